package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

const errorLevel = slog.LevelError

func callCommand() *cobra.Command {
	var f flags
	var session, task string
	c := f.take(&cobra.Command{
		Use:   "call [--session NAME] TOOL [JSON | -]",
		Short: "Call one tool, through the same door as any client",
		Long: "Call one tool by the name `writ tools` shows, with its arguments as one JSON object\n" +
			"(- reads them from standard input). The call goes to the running gateway of the state\n" +
			"directory, else to one started for it. Calls that build on each other need --session.",
		Example: "  writ call --session demo search_documents '{\"query\":\"retention\"}'",
		Args:    between(1, 2, "a tool and at most one JSON object"),
		RunE: func(c *cobra.Command, args []string) error {
			arguments, err := readArguments(args[1:], c.InOrStdin())
			if err != nil {
				return err
			}
			own := ownTerminal(c.InOrStdin(), c.ErrOrStderr())
			cl, err := f.connect(c.Context(), session, own, c.ErrOrStderr())
			if err != nil {
				return err
			}
			params := ask.CallParams(args[0], arguments)
			if c.Flags().Changed("task") {
				params = strictjson.Set(params, "_meta", strictjson.Set([]byte("{}"), gateway.MetaTask, strictjson.Quote(task)))
			}
			result, rerr, err := cl.call(c.Context(), "tools/call", args[0], params)
			if r, elsewhere := cl.(*remote); elsewhere && own != nil && err == nil && r.allowed(c.Context(), f.state, own, result, arguments) {
				result, rerr, err = cl.call(c.Context(), "tools/call", args[0], params)
			}
			if cerr := cl.close(); err == nil && cerr != nil {
				err = unclean(cerr)
			}
			if err != nil {
				return err
			}
			if _, here := cl.(*local); here && waits(result) {
				fmt.Fprintln(c.ErrOrStderr(), "writ: the gateway of this command asked, and has ended: writ approve does not see what it asked. At a terminal it\n"+
					"asks there; without --config the call goes to the writ serve that runs, whose questions writ approve answers.")
			}
			return printResult(c.OutOrStdout(), result, rerr, f.json, c)
		},
	}, "state", "config", "json")
	f.oneServer(c)
	c.Flags().StringVar(&session, "session", "", "`NAME` of the session to call in; opened on first use")
	c.Flags().StringVar(&task, "task", "", "`NAME` of the task within the session, for the memory")
	return c
}

// readArguments returns one strict JSON object.
func readArguments(args []string, stdin io.Reader) ([]byte, error) {
	b := []byte("{}")
	if len(args) == 1 {
		b = []byte(args[0])
		if args[0] == "-" {
			var err error
			if b, err = io.ReadAll(io.LimitReader(stdin, int64(strictjson.Request.Bytes)+1)); err != nil {
				return nil, cli.Fail(cli.ExitIO, "", "standard input cannot be read")
			}
		}
	}
	if err := strictjson.Check(b, strictjson.Request); err != nil {
		return nil, cli.Fail(cli.ExitData, "writ call TOOL '{\"key\":\"value\"}'", "the arguments are %w", err)
	}
	if strictjson.KindOf(b) != strictjson.Object {
		return nil, cli.Fail(cli.ExitData, "writ call TOOL '{\"key\":\"value\"}'", "the arguments are one JSON object")
	}
	return []byte(strings.TrimSpace(string(b))), nil
}

// printResult shows how a call ended and returns the error with its exit code:
// 77 for a refusal, 1 for an error of the server's.
// ran is the command that made the call.
func printResult(w io.Writer, result []byte, rerr *rpc.Error, asJSON bool, ran *cobra.Command) error {
	var o writ.Outcome
	meta := strictjson.Get(result, "_meta")
	failed := rerr != nil || string(strictjson.Get(result, "isError")) == "true"
	if rerr != nil {
		if json.Unmarshal(rerr.Data, &o) != nil {
			o = writ.Outcome{}
		}
	} else if raw := strictjson.Get(meta, gateway.MetaOutcome); raw != nil {
		_ = json.Unmarshal(raw, &o)
	}
	said, _ := strictjson.Text(strictjson.At(result, "/content/0/text"))
	if rerr != nil {
		said = rerr.Message
	}
	refused := failed && o.Status == writ.Rejected && o.Rejection != nil
	switch {
	case asJSON && rerr != nil:
		fmt.Fprintf(w, "%s\n", cli.PlainJSON(rerr.Encode()))
	case asJSON:
		fmt.Fprintf(w, "%s\n", cli.PlainJSON(strictjson.Compact(result)))
	case refused && strictjson.Get(meta, gateway.MetaEvidence) == nil:
		printSaid(w, steps(ran, said))
	case refused: // by Writ's own server, whose words are a result
		printRefusal(w, &o, ran)
	case rerr != nil:
		next := "writ tools"
		if strings.Contains(rerr.Message, gateway.NotKnown) {
			next = "writ audit show --unsettled"
		}
		return cli.Fail(cli.ExitServer, next, "error %d: %s", rerr.Code, cli.OneLine(rerr.Message, 400))
	default:
		printContent(w, result, cli.Terminal(w))
		when(w, o.Status == writ.Transformed, "transformed: the policy normalised the call\n")
		when(w, strictjson.Get(meta, gateway.MetaShadow) != nil, "shadow: the call passed whatever was decided\n")
		if ev := strictjson.Get(meta, gateway.MetaEvidence); ev != nil {
			id, _ := strictjson.Text(strictjson.Get(ev, "id"))
			if string(strictjson.Get(ev, "admissible")) == "true" {
				fmt.Fprintf(w, "evidence %s\n", cli.Printable(id))
			} else {
				why, _ := strictjson.Text(strictjson.Get(ev, "why"))
				fmt.Fprintf(w, "%s vouches for nothing: %s\n", cli.Printable(id), cli.Printable(cmp.Or(noEvidence[why], why)))
			}
		}
	}
	switch {
	case refused:
		return cli.Ended(cli.ExitRefused)
	case failed:
		return cli.Ended(cli.ExitServer)
	}
	return nil
}

// noEvidence says to a person why a result is no evidence.
var noEvidence = map[string]string{
	"error":       "the server says that it failed",
	"unvalidated": "it is not data that a schema of the server's or a contract describes (unvalidated)",
	"no_contract": "no contract says what is in it (no_contract)",
	"no_session":  "the call had no session",
}

// steps is withWhere for the commands that a refusal names.
func steps(ran *cobra.Command, said string) string {
	return namedStep().ReplaceAllStringFunc(said, func(step string) string { return "`" + withWhere(ran, strings.Trim(step, "`")) + "`" })
}

var namedStep = text.Pattern("`writ [a-z][^`\n]*`")

// printSaid shows a refusal of the door's in the words that its client gets.
func printSaid(w io.Writer, said string) {
	for i, line := range strings.Split(said, "\n") {
		if i == 0 {
			fmt.Fprintln(w, coloured(w, "31", cli.OneLine(line, 1200)))
		} else {
			theirs(w, "", line, 1200)
		}
	}
}

// printRefusal says what was refused, why, and what would make it pass.
func printRefusal(w io.Writer, o *writ.Outcome, ran *cobra.Command) {
	r := o.Rejection
	fmt.Fprintln(w, coloured(w, "31", fmt.Sprintf("%s: %s (%s)", story.Word(string(o.Status), string(r.Reason)), r.Code, r.Reason)))
	for _, f := range r.Failures {
		need := cli.OneLine(steps(ran, f.Need), 600)
		if f.Pointer != "" {
			need = cli.OneLine(f.Pointer, 200) + ": " + need
		}
		theirs(w, "  ", need, 0)
	}
}

// printContent shows the text a server returned, with nothing in it unescaped;
// with a bar before each line, so that none of them passes for one of ours.
func printContent(w io.Writer, result []byte, bar bool) {
	if s := strictjson.Get(result, "structuredContent"); s != nil {
		theirs(w, "", string(strictjson.Compact(s)), 0)
		return
	}
	blocks, _ := strictjson.Elements(strictjson.Get(result, "content"))
	for _, b := range blocks {
		kind, _ := strictjson.Text(strictjson.Get(b, "type"))
		if text, ok := strictjson.Text(strictjson.Get(b, "text")); ok && bar {
			for line := range strings.Lines(text) {
				theirs(w, "| ", strings.TrimSuffix(line, "\n"), 0)
			}
		} else if ok {
			fmt.Fprintln(w, cli.Printable(text))
		} else {
			fmt.Fprintf(w, "(%s)\n", cli.OneLine(kind, 40))
		}
	}
}
