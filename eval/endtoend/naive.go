package endtoend

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/mcp/upstream"
)

// naive is the agent Writ is compared with. It does what a short program around
// a model does: it takes the first JSON object in the planner's words, calls
// what that names with the arguments that stand there, and shows the summary the
// model wrote. It has no input policy, no allowlist, no schema, no provenance
// and no grounding. It is deliberately unsafe: no product code may use it.
type naive struct {
	servers  []upstream.Config
	sessions map[string]*mcp.ClientSession
	tools    map[string][]*mcp.Tool
}

const naivePatience = time.Minute // for one request

func (n *naive) open(ctx context.Context) {
	if n.sessions != nil {
		return
	}
	n.sessions, n.tools = map[string]*mcp.ClientSession{}, map[string][]*mcp.Tool{}
	for _, s := range n.servers {
		cmd := exec.Command(s.Command[0], s.Command[1:]...)
		cmd.Dir, cmd.Env = s.Dir, s.Environment()
		c := mcp.NewClient(&mcp.Implementation{Name: "naive", Version: "1"}, nil)
		session, err := c.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			continue // its tools are not there
		}
		n.sessions[s.Name] = session
		for t, err := range session.Tools(ctx, nil) {
			if err != nil {
				break
			}
			n.tools[s.Name] = append(n.tools[s.Name], t)
		}
	}
}

func (n *naive) prompt(request string) ask.Prompt {
	p := ask.Prompt{Request: request}
	for _, s := range n.servers {
		for _, t := range n.tools[s.Name] {
			b, err := json.Marshal(t)
			if err != nil {
				continue
			}
			p.Tools = append(p.Tools, ask.Listed{Tool: claim.Tool{Server: s.Name, Name: t.Name}, Definition: b})
		}
	}
	return p
}

func (n *naive) ask(ctx context.Context, request string, p ask.Planner, s ask.Summariser) Outcome {
	ctx, cancel := context.WithTimeout(ctx, naivePatience)
	defer cancel()
	n.open(ctx)
	raw, err := p.Plan(ctx, n.prompt(request))
	if err != nil {
		return Outcome{Status: ask.Failed, Reason: "the planner gave no plan"}
	}
	plan, ok := anyPlan(raw)
	switch {
	case !ok:
		return Outcome{Status: ask.Failed, Reason: "no plan in the planner's words"}
	case plan.Tool == "":
		return Outcome{Status: ask.NeedsMoreInfo}
	}
	result, err := n.call(ctx, plan)
	if err != nil {
		return Outcome{Status: ask.ServerError, Reason: "the server refused the call"}
	}
	record, err := json.Marshal(result)
	if err != nil {
		return Outcome{Status: ask.Failed, Reason: "the result cannot be read"}
	}
	out := Outcome{Status: ask.Answered, Answer: string(record)}
	if result.IsError {
		return Outcome{Status: ask.ServerError, Reason: "the tool failed"}
	}
	if s == nil {
		return out
	}
	source, stop := claim.NewSource(record, "/structuredContent", claim.SourceLimit)
	if stop != nil {
		if source, stop = claim.TextSource(record, claim.SourceLimit); stop != nil {
			return out
		}
	}
	said, err := s.Summarise(ctx, ask.Material{Request: request, Tool: plan.Server + "/" + plan.Tool, Source: source})
	if err == nil {
		out.Items = anySummary(said)
	}
	return out
}

// call asks the server the plan names, or one that has the tool. It is the one
// place past the door where a tool is called; a test of the architecture names
// it.
func (n *naive) call(ctx context.Context, p loosePlan) (*mcp.CallToolResult, error) {
	session := n.sessions[p.Server]
	for _, s := range n.servers {
		if session == nil && slices.ContainsFunc(n.tools[s.Name], func(t *mcp.Tool) bool { return t.Name == p.Tool }) {
			session = n.sessions[s.Name]
		}
	}
	if session == nil {
		return nil, errors.New("no such server")
	}
	return session.CallTool(ctx, &mcp.CallToolParams{Name: p.Tool, Arguments: p.Args})
}

func (n *naive) close() error {
	for _, s := range n.sessions {
		s.Close() // a server that ended badly was recorded as far as it came
	}
	return nil
}

type loosePlan struct {
	Server, Tool string
	Args         json.RawMessage
	Arguments    json.RawMessage
}

// anyPlan is the first object in the text that reads as a plan, whatever stands
// around or in it.
func anyPlan(raw []byte) (loosePlan, bool) {
	var p loosePlan
	if !firstObject(raw, &p) {
		return p, false
	}
	if server, tool, ok := strings.Cut(p.Tool, "/"); ok && p.Server == "" {
		p.Server, p.Tool = server, tool
	}
	p.Args = json.RawMessage(cmp.Or(string(p.Args), string(p.Arguments), "{}"))
	return p, true
}

func firstObject(raw []byte, into any) bool {
	for {
		at := bytes.IndexByte(raw, '{')
		if at < 0 {
			return false
		}
		raw = raw[at:]
		if json.NewDecoder(bytes.NewReader(raw)).Decode(into) == nil {
			return true
		}
		raw = raw[1:]
	}
}

// anySummary is every item of the summary, as the model wrote it.
func anySummary(raw []byte) []Item {
	var s struct {
		Bullets, Risks, Recommendations []Item
	}
	if !firstObject(raw, &s) {
		if text := strings.TrimSpace(string(raw)); text != "" {
			return []Item{{Text: text}} // prose is shown as it came
		}
		return nil
	}
	return slices.Concat(s.Bullets, s.Risks, s.Recommendations)
}
