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
	"strings"

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
	// Of the versions of MCP it speaks modern says in each request which it is;
	// the others open with initialize, legacy where a client knows none of them.
	versions = `["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`
	modern   = "2026-07-28"
	legacy   = "2025-11-25"

	metaPrefix   = "io.modelcontextprotocol/"
	serverInfo   = `{"name":"writ-example","version":"1"}`
	capabilities = `{"logging":{},"tools":{"listChanged":true}}`
	cacheable    = `"ttlMs":0,"cacheScope":"public",`
	// complete begins every result of modern.
	complete = `{"resultType":"complete","_meta":{"` + metaPrefix + `serverInfo":` + serverInfo + `},`
)

// Serve answers one client that speaks newline-delimited JSON-RPC on in and
// out, until in ends or ctx is done; both are a normal end and give nil. What is
// read or written when ctx is done is left to itself. Each Serve has records of
// its own.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	done := make(chan error, 1)
	go func() { done <- serve(in, out) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-done:
		if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		return fmt.Errorf("example server: %w", err)
	}
}

// serve answers line by line and returns why there is no next one.
func serve(in io.Reader, out io.Writer) error {
	s := &server{records: newRecords()}
	for lines := rpc.NewLines(in, strictjson.Request.Bytes); ; {
		b, err := lines.Next()
		var answer []byte
		switch {
		case err == nil:
			answer = s.answer(b)
		case errors.Is(err, rpc.ErrLineTooLong):
			answer = rpc.ErrorResponse(nil, rpc.Errorf(rpc.CodeInvalidRequest, "the message is too long"))
		default:
			return err
		}
		if answer == nil {
			continue
		}
		if _, err := out.Write(append(answer, '\n')); err != nil {
			return err
		}
	}
}

// server is one client's.
type server struct {
	records
	greeted bool // initialize was answered
}

// answer returns what one line is answered with, nil for nothing.
func (s *server) answer(b []byte) []byte {
	m, fault := rpc.Parse(b, strictjson.Request)
	if fault == nil && !m.IsRequest() {
		return nil
	}
	var result []byte
	if fault == nil {
		result, fault = s.result(&m)
	}
	switch {
	case fault != nil:
		return rpc.ErrorResponse(m.ID, fault)
	case m.Method == "subscriptions/listen": // a stream has no result while it is open
		return rpc.Notification("notifications/subscriptions/acknowledged", result)
	}
	return rpc.Response(m.ID, result)
}

func (s *server) result(m *rpc.Message) ([]byte, *rpc.Error) {
	if meta := m.Params.Get("_meta"); meta.Get(metaPrefix + "protocolVersion").Exists() {
		return s.modern(m, meta)
	}
	switch m.Method {
	case "ping":
		return []byte(`{}`), nil
	case "initialize":
		if s.greeted {
			return nil, rpc.Errorf(rpc.CodeInvalidRequest, "initialize was answered already")
		}
		s.greeted = true
		version, _ := m.Params.Get("protocolVersion").Text()
		if version == modern || !strings.Contains(versions, string(strictjson.Quote(version))) {
			version = legacy
		}
		return fmt.Appendf(nil, `{"capabilities":%s,"protocolVersion":%q,"serverInfo":%s}`, capabilities, version, serverInfo), nil
	}
	if !s.greeted {
		return nil, rpc.Errorf(rpc.CodeInvalidRequest, "initialize comes first")
	}
	switch m.Method {
	case "logging/setLevel": // there is no message of any level
		return []byte(`{}`), nil
	case "tools/list":
		return list(`{`, m.Params)
	case "tools/call":
		return s.call(`{`, m.Params)
	}
	return nil, rpc.Errorf(rpc.CodeMethodNotFound, "method not found")
}

// modern is result for a request that says of which version it is.
func (s *server) modern(m *rpc.Message, meta strictjson.Value) ([]byte, *rpc.Error) {
	stated := meta.Get(metaPrefix + "protocolVersion")
	if v, _ := stated.Text(); v != modern {
		e := rpc.Errorf(rpc.CodeVersion, "unsupported protocol version")
		e.Data = fmt.Appendf(nil, `{"supported":%s,"requested":%s}`, versions, stated.Raw())
		return nil, e
	}
	if meta.Get(metaPrefix+"clientCapabilities").Kind() != strictjson.Object {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "_meta has no %sclientCapabilities", metaPrefix)
	}
	switch m.Method {
	case "server/discover":
		return fmt.Appendf(nil, `%s%s"supportedVersions":%s,"capabilities":%s}`, complete, cacheable, versions, capabilities), nil
	case "tools/list":
		return list(complete, m.Params)
	case "tools/call":
		return s.call(complete, m.Params)
	case "subscriptions/listen": // nothing here ever changes: the stream stays silent
		granted := `{}`
		if string(m.Params.At("/notifications/toolsListChanged").Raw()) == "true" {
			granted = `{"toolsListChanged":true}`
		}
		return fmt.Appendf(nil, `{"_meta":{"%ssubscriptionId":%s},"notifications":%s}`, metaPrefix, m.ID, granted), nil
	}
	return nil, rpc.Errorf(rpc.CodeMethodNotFound, "method not found")
}

// list returns all tools, in a result that begins as it is told.
func list(begin string, params strictjson.Value) ([]byte, *rpc.Error) {
	if params.Get("cursor").Exists() {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "there is one page")
	}
	all := bytes.ReplaceAll(bytes.TrimSpace(published), []byte("\n"), []byte(","))
	return fmt.Appendf(nil, `%s%s"tools":[%s]}`, begin, cacheable, all), nil
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
