package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/hook"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/strictjson"
)

const (
	// hookWithin is how long a hook takes at most: less than the client waits, because
	// a client that has waited in vain goes on as if there were no hook.
	hookWithin = 50 * time.Second
	// hookStarts is how long it looks for a gateway that the client is just starting.
	hookStarts = 2 * time.Second
	// hookTimeout is how long the client is told to wait, in seconds.
	hookTimeout = 60
	// exitBlocks is the exit code by which a hook has its client stop.
	exitBlocks = 2
)

func hookCommand() *cobra.Command {
	var f flags
	c := f.take(&cobra.Command{
		Use: "hook claude-code | host", Short: "Answer a client that asks before it runs a tool of its own",
		Long: "Read what a client's hook says on standard input, ask the gateway of that client, and answer\n" +
			"as the client expects: before it runs a tool of its own with deny, ask or nothing, never with\n" +
			"leave. writ connect puts it into the client's configuration.\n\n" +
			"With host, for any other: a request of docs/hosts.md on standard input, its answer on\n" +
			"standard output.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misused(errors.New("claude-code, or host for any other"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch args[0] {
			case "claude-code":
				return f.hookClaudeCode(c)
			case "host":
				return f.hookHost(c)
			}
			return misused(errors.New("no client of that name has hooks that are known"))
		},
	}, "state")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misused(err) })
	return c
}

// misused is how a hook that was written down wrongly ends: by any other exit code the
// client would go on as if there were none.
func misused(err error) error {
	return &cli.Exit{Code: exitBlocks, Err: fmt.Errorf("the command of this hook is not one: %w", err), Hint: "writ connect claude-code"}
}

// claudeEvent is what Claude Code tells a hook.
type claudeEvent struct {
	*hookAsked
	name, mode string
}

// readClaude reads it. ok is false where it is none that can be read; name is known then
// too, as far as it can be.
func readClaude(b []byte) (e claudeEvent, ok bool) {
	var loose struct {
		Name string `json:"hook_event_name"`
	}
	_ = json.Unmarshal(b, &loose)
	e.hookAsked, e.name = &hookAsked{Host: "claude-code"}, loose.Name
	v, err := strictjson.Parse(bytes.TrimSpace(b), hookLimits)
	if err != nil || v.Kind() != strictjson.Object {
		return e, false
	}
	text := func(name string) string {
		s, _ := v.Get(name).Text()
		return s
	}
	e.name, e.mode, e.Dir = text("hook_event_name"), text("permission_mode"), text("cwd")
	e.Conversation = text("session_id")
	e.Event = map[string]string{"PreToolUse": "before", "PostToolUse": "after", "PostToolUseFailure": "after", "UserPromptSubmit": "prompt"}[e.name]
	switch e.Event {
	case "prompt":
		e.Text = text("prompt")
		return e, e.Text != ""
	case "before", "after":
		e.ID, e.Tool, e.Arguments = text("tool_use_id"), text("tool_name"), v.Get("tool_input")
		if e.name == "PostToolUse" {
			e.Result = v.Get("tool_response")
		} else {
			e.Failed = text("error")
		}
		return e, e.ID != "" && e.Tool != ""
	}
	return e, true
}

// noticed reports whether a prompt is a notice of the client's, which comes the same way
// and has the agent's words in it.
func noticed(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "<") || strings.Contains(text, "<task-notification>") || strings.Contains(text, "<system-reminder>")
}

// prompting are the modes in which Claude Code asks its person.
var prompting = []string{"", "default", "plan", "acceptEdits"}

// hookClaudeCode answers one hook. Whatever goes wrong before a tool runs is a deny: any
// other way for this process to end would let it run.
func (f *flags) hookClaudeCode(c *cobra.Command) error {
	ctx, cancel := context.WithTimeout(c.Context(), hookWithin)
	defer cancel()
	root := os.Getenv("CLAUDE_PROJECT_DIR")
	clients, genuine := speaksFor()
	interactive := genuine && os.Getenv("CLAUDE_CODE_ENTRYPOINT") == "cli" && !printing(clients[0])
	var reply hookSaid
	var gone error
	if genuine {
		a := &hookAsked{Host: "claude-code", Event: "stdin", Root: root, Interactive: interactive}
		reply, gone = f.hookAt(ctx, a, onStdin, func() bool {
			e, ok := readClaude(localdoor.Peek())
			e.Root = root
			return !ok || e.waits()
		})
	}
	// What the gateway has read, and judged, is answered by what it says of it.
	e, reads := &claudeEvent{hookAsked: &hookAsked{Event: reply.Event}}, false
	if reply.Event == "" {
		var err error
		if e, reads, err = f.ownClaude(c.InOrStdin(), root); e == nil {
			return err
		}
	}
	switch e.Event {
	case "before":
		if !genuine {
			reply, gone = f.hookAt(ctx, e.hookAsked, clients, func() bool { return !reads })
		}
		return answerBefore(c.OutOrStdout(), reply, gone, reads)
	case "prompt":
		if genuine && !(reply.Event == "" && noticed(e.Text)) {
			return answerPrompt(c.OutOrStdout(), reply, gone, interactive)
		}
	}
	return nil // what is not the client's own may be anybody's word
}

// ownClaude reads what the client says where no gateway has; nil is that nothing is answered. reads
// says that the call only reads, and names nothing of Writ's own, which nobody else looks for then.
func (f *flags) ownClaude(in io.Reader, root string) (e *claudeEvent, reads bool, err error) {
	b, err := io.ReadAll(io.LimitReader(in, int64(hookLimits.Bytes)+1))
	said, ok := readClaude(b)
	switch {
	case (err != nil || !ok) && (said.name == "PreToolUse" || said.name == ""):
		return nil, false, &cli.Exit{Code: exitBlocks, Err: errors.New("not done: what the client says of the call cannot be read")}
	case err != nil || !ok:
		return nil, false, nil
	case said.Event == "before" || said.Event == "after":
		said.Root = root
		var own []string
		if dir, err := stateThere(f.state); err == nil && dir != "" {
			own = statedir.Own(dir)
		}
		call, _ := said.call(hook.Named(said.Host), own)
		if reads = call.Reads && !names(call.Names, said.Dir, own); !call.Judged {
			return nil, false, nil
		}
	}
	return &said, reads, nil
}

// waits reports whether a hook looks for a gateway that is just starting.
func (e *claudeEvent) waits() bool {
	switch e.Event {
	case "before":
		call, _ := e.call(hook.Named(e.Host), nil)
		return call.Judged && !call.Reads
	case "prompt":
		return !noticed(e.Text)
	}
	return false
}

// hookHost passes a request of any host on, and prints the answer. A host that asks
// before it acts is answered with deny where nobody can be asked.
func (f *flags) hookHost(c *cobra.Command) error {
	ctx, cancel := context.WithTimeout(c.Context(), hookWithin)
	defer cancel()
	clients, genuine := speaksFor()
	token := os.Getenv(tokenVariable)
	if genuine && token == "" {
		reply, err := f.hookAt(ctx, &hookAsked{Host: "host", Event: "stdin"}, onStdin, func() bool {
			event, whole := strictjson.Text(strictjson.Get(localdoor.Peek(), "event"))
			return !whole || event == "before"
		})
		if reply.Event != "" || err == nil {
			return answerHost(c.OutOrStdout(), reply.Event, reply, err)
		}
	}
	b, err := io.ReadAll(io.LimitReader(c.InOrStdin(), int64(hookLimits.Bytes)+1))
	if err == nil && strictjson.Get(b, "client") == nil {
		b = strictjson.Set(bytes.TrimSpace(b), "client", fmt.Append(nil, clients[0]))
	} else {
		clients = nil
	}
	a, ok := readHook(b)
	if err != nil || !ok {
		return &cli.Exit{Code: exitBlocks, Err: fmt.Errorf("not done: the request is none that docs/hosts.md has")}
	}
	if a.Token = token; a.Token == "" && a.Event != "before" {
		return cli.Fail(cli.ExitRefused, "docs/hosts.md", "it may be anybody's word: it comes neither from the host by a pair of sockets nor with a token")
	}
	if clients == nil {
		clients = []int{a.Client}
	}
	reply, err := f.hookAt(ctx, &a, clients, func() bool { return a.Event == "before" })
	return answerHost(c.OutOrStdout(), a.Event, reply, err)
}

// answerHost prints the answer to any host.
func answerHost(w io.Writer, event string, reply hookSaid, err error) error {
	if err != nil && event == "before" {
		reply, err = hookSaid{Decision: "deny", Reason: err.Error() + "."}, nil
	}
	if err != nil {
		return cli.Fail(cli.ExitIO, "writ status", "%w", err)
	}
	reply.Event = ""
	return json.NewEncoder(w).Encode(reply)
}

// speaksFor are the processes that may be the client, the likeliest first. genuine says
// that it is the first, and that what stands on standard input came from it.
func speaksFor() (clients []int, genuine bool) {
	above := localdoor.Above(os.Getpid())
	if pid, ok := localdoor.Stdin(); ok && slices.Contains(above, pid) {
		return []int{pid}, true
	}
	if len(above) == 0 {
		above = []int{os.Getppid()}
	}
	return above[:min(len(above), 6)], false
}

// printing reports whether a client was started to answer once and ask nobody.
func printing(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(strings.Split(string(b), "\x00"), func(a string) bool {
		return a == "-p" || a == "--print" || strings.HasPrefix(a, "--print=")
	})
}

// inWords is an error that says to a person in a whole sentence what is so.
type inWords string

func (e inWords) Error() string { return string(e) }

// onStdin is the client of a request that its gateway reads on standard input itself: that
// says who it is. Where the reply names no event nothing was read there.
var onStdin = []int{0}

// hookAt asks the gateway of the client. waits has it look for one that just starts.
func (f *flags) hookAt(ctx context.Context, a *hookAsked, clients []int, waits func() bool) (reply hookSaid, err error) {
	handed := a.Event == "stdin"
	until := time.Now().Add(hookStarts)
	for {
		_, doors, _ := f.reach(handed)
		if len(doors) == 0 {
			err = inWords("Writ is not running, so nothing was done. Start the client anew, or a gateway with `writ serve`")
		}
		for _, door := range doors {
			var over bool
			if reply, over, err = hookAtDoor(ctx, door, a, clients); over {
				return reply, err
			}
		}
		if !waits() || time.Now().After(until) {
			return reply, err
		}
		select {
		case <-ctx.Done():
			return reply, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// hookAtDoor asks at one door for each that may be the client; over says that it is the gateway
// of one of them, and no other is asked.
func hookAtDoor(ctx context.Context, door *http.Client, a *hookAsked, clients []int) (reply hookSaid, over bool, err error) {
	handed := a.Event == "stdin"
	for _, pid := range clients {
		a.Client = pid
		var status int
		reply = hookSaid{}
		switch status, err = exchangeOr(ctx, door, "POST /hook", a.Token, a.encode(), 1<<16, &reply,
			inWords("Writ does not answer, so nothing was done. `writ status` says what runs"), errUnreadHook); {
		case errors.Is(err, errUnreadHook):
			status = 0 // it is none
		case err != nil:
		case status == http.StatusNotFound && (a.Event == "before" || handed && reply.Event == ""):
			err = inWords("No gateway of Writ serves this client, so nothing was done. Start the client anew")
		case status != http.StatusOK:
			err = errors.New(cli.OneLine(reply.Error, 200))
		}
		if status == http.StatusOK || reply.Event != "" || status != 0 && status != http.StatusNotFound && !handed {
			return reply, true, err
		}
	}
	return reply, false, err
}

const errUnreadHook = inWords("Writ's answer cannot be read, so nothing was done")

// encode writes it as readHook reads it.
func (a *hookAsked) encode() []byte {
	b := []byte("{}")
	set := func(name string, v []byte) { b = strictjson.Set(b, name, v) }
	texts, flags := a.members()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if text := *texts[name]; text != "" {
			set(name, strictjson.Quote(strings.ToValidUTF8(text, "\uFFFD")))
		}
	}
	set("client", fmt.Append(nil, a.Client))
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if *flags[name] {
			set(name, []byte("true"))
		}
	}
	if a.Arguments.Exists() {
		set("arguments", a.Arguments.Raw())
	}
	if a.Result.Exists() {
		set("result", a.Result.Raw())
	}
	return b
}

// answerBefore tells the client. It never says allow, which would pass its own question.
// Where no gateway answers, what only reads goes on as if there were no hook.
func answerBefore(w io.Writer, reply hookSaid, err error, reads bool) error {
	switch {
	case err != nil && reads:
		return nil
	case err != nil:
		reply.Decision, reply.Reason = "deny", err.Error()+"."
	case reply.Decision == "pass":
		return nil
	case reply.Decision != "ask":
		reply.Decision = "deny"
	}
	var out struct {
		Specific struct {
			Event    string `json:"hookEventName"`
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	out.Specific.Event, out.Specific.Decision, out.Specific.Reason = "PreToolUse", reply.Decision, "Writ: "+reply.Reason
	if json.NewEncoder(w).Encode(out) != nil {
		return &cli.Exit{Code: exitBlocks, Err: fmt.Errorf("not done: the answer cannot be written")}
	}
	return nil
}

// answerPrompt tells the person where what he typed is not on record, and keeps from the
// model what the operator's input policy ended.
func answerPrompt(w io.Writer, reply hookSaid, err error, interactive bool) error {
	var out struct {
		Decision string `json:"decision,omitempty"`
		Reason   string `json:"reason,omitempty"`
		Message  string `json:"systemMessage,omitempty"`
	}
	switch {
	case reply.Halted != "":
		out.Decision, out.Reason = "block", "Writ: "+reply.Reply
	case err != nil && interactive:
		out.Message = "Writ: what you typed is not on record and vouches for nothing: " + strings.Replace(err.Error(), ", so nothing was done", "", 1) + "."
	default:
		return nil
	}
	return json.NewEncoder(w).Encode(out)
}
