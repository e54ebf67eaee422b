// Package example is the MCP server that `writ serve` mounts when nothing is
// configured, so that a person can see a refusal and an accepted act within a
// minute. It is an ordinary server behind the one door: a child process that
// speaks MCP over its standard input and output, with a contract for each tool
// (policy.yaml beside this file).
//
// It trusts nothing and is trusted with nothing: its records are made up, live
// in memory, and start the same every time. Two of its habits are deliberate,
// because real servers have them: search_documents repeats its query in the
// result, and ticket INC-1043 holds a text that a stranger wrote.
package example

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// Name is how the contracts in Policy call this server.
const Name = "example"

//go:embed policy.yaml
var contracts []byte

// published are the definitions that tools/list answers, a tool a line: the pins
// of policy.yaml are of these bytes.
//
//go:embed definitions.jsonl
var published []byte

// Policy returns the contracts of all tools of this server, each pinned to the
// definition it publishes. The caller may change the copy it gets.
func Policy() []byte { return bytes.Clone(contracts) }

const (
	serverInfo   = `{"name":"writ-example","version":"1"}`
	capabilities = `{"logging":{},"tools":{"listChanged":true}}`
	// complete begins every result of the newest version.
	complete = `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":` + serverInfo + `},`
)

// Serve answers one client that speaks newline-delimited JSON-RPC on in and
// out, until in ends or ctx is done; both are a normal end and give nil. What is
// read or written when ctx is done is left to itself. Each Serve has records of
// its own.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	err := downstream.ServeStdio(ctx, &server{records: newRecords()}, in, out, downstream.StdioOptions{MaxLine: strictjson.Request.Bytes})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("example server: %w", err)
	}
	return nil
}

// server is one client's. It implements downstream.Router; the connection is its session.
type server struct {
	mu sync.Mutex // guards records
	records
}

// PublicID implements downstream.Session.
func (*server) PublicID() string { return "s_example" }

// Describe implements downstream.Router.
func (*server) Describe(context.Context) (can, info []byte, instructions string) {
	return []byte(capabilities), []byte(serverInfo), ""
}

// OpenSession implements downstream.Router.
func (s *server) OpenSession(context.Context, string, downstream.Carrier) (string, downstream.Session, error) {
	return "", s, nil
}

// FindSession implements downstream.Router: no secret leads to a connection.
func (*server) FindSession(context.Context, string, string) (downstream.Session, error) {
	return nil, downstream.ErrNoSession
}

// CloseSession implements downstream.Router.
func (*server) CloseSession(context.Context, downstream.Session) error { return nil }

// Subscribe implements downstream.Router. Nothing here ever changes: the stream stays silent.
func (*server) Subscribe(_ context.Context, l downstream.Listener, _ func(string, []byte)) (downstream.Filter, func()) {
	return downstream.Filter{Tools: l.Filter.Tools}, func() {}
}

// Handle implements downstream.Router.
func (s *server) Handle(_ context.Context, r *downstream.Request) (out downstream.Reply) {
	begin := `{`
	if r.Era == downstream.Modern {
		begin = complete
	}
	switch r.Method {
	case "tools/list":
		out.Result, out.Err = list(begin, r.Params)
	case "tools/call":
		s.mu.Lock()
		defer s.mu.Unlock()
		out.Result, out.Err = s.call(begin, r.Params)
	case "logging/setLevel": // there is no message of any level
		out.Result = []byte(`{}`)
	default:
		out.Err = rpc.Errorf(rpc.CodeMethodNotFound, "method not found")
	}
	return out
}

// list returns all tools, in a result that begins as it is told.
func list(begin string, params strictjson.Value) ([]byte, *rpc.Error) {
	if params.Get("cursor").Exists() {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "there is one page")
	}
	all := bytes.ReplaceAll(bytes.TrimSpace(published), []byte("\n"), []byte(","))
	return fmt.Appendf(nil, `%s"ttlMs":0,"cacheScope":"public","tools":[%s]}`, begin, all), nil
}

// call runs a tool. Arguments that do not fit, as what a tool says itself, are a
// result for the model to read.
func (s *server) call(begin string, params strictjson.Value) ([]byte, *rpc.Error) {
	name, _ := params.Get("name").Text()
	for definition := range bytes.Lines(published) {
		tool := strictjson.Of(definition)
		if n, _ := tool.Get("name").Text(); n != name {
			continue
		}
		var v any
		args, err := arguments(tool.At("/inputSchema/properties"), params.Get("arguments"))
		if err == nil {
			v, err = s.run(name, args)
		}
		if err != nil {
			return fmt.Appendf(nil, `%s"content":[{"type":"text","text":%s}],"isError":true}`, begin, strictjson.Quote(err.Error())), nil
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInternal, "the result cannot be written")
		}
		return fmt.Appendf(nil, `%s"content":[{"type":"text","text":%s}],"structuredContent":%s}`, begin, strictjson.Quote(string(b)), b), nil
	}
	return nil, rpc.Errorf(rpc.CodeInvalidParams, "unknown tool")
}

// arguments reads a call's arguments as a definition has them: strings, all of
// them required, and no others.
func arguments(declared, given strictjson.Value) (map[string]string, error) {
	if given.Exists() && given.Kind() != strictjson.Object {
		return nil, errors.New("the arguments are an object")
	}
	args := map[string]string{}
	for name, v := range given.Members() {
		property := declared.Get(name)
		if !property.Exists() {
			return nil, fmt.Errorf("there is no argument %q", name)
		}
		text, ok := v.Text()
		if !ok {
			return nil, fmt.Errorf("argument %q is a string", name)
		}
		args[name] = text
		enum, one := property.Get("enum"), false
		var members [][]byte
		for _, e := range enum.Elements() {
			s, _ := e.Text()
			one, members = one || s == text, append(members, e.Raw())
		}
		if enum.Exists() && !one {
			return nil, fmt.Errorf("argument %q is one of %s", name, bytes.Join(members, []byte(", ")))
		}
	}
	for name := range declared.Members() {
		if _, ok := args[name]; !ok {
			return nil, fmt.Errorf("argument %q is missing", name)
		}
	}
	return args, nil
}
