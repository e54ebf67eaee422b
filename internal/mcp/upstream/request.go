package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// judged are the methods that need a decision, as the gate names them.
var judged = map[string]policy.Method{
	"tools/call":          policy.CallTool,
	"resources/read":      policy.ReadResource,
	"resources/subscribe": policy.SubscribeResource,
	"prompts/get":         policy.GetPrompt,
	"completion/complete": policy.Complete,
}

// free are the methods that need none: they act on nothing a client could name.
var free = map[string]bool{
	"ping":                     true,
	"logging/setLevel":         true,
	"tools/list":               true,
	"prompts/list":             true,
	"resources/list":           true,
	"resources/templates/list": true,
	"resources/unsubscribe":    true,
}

// Call sends a judged request, if its decision allows it. It is the one door:
// no other function of this package sends one of these methods. A call is never
// sent twice.
func (s *Server) Call(ctx context.Context, r Request) Response {
	want, ok := judged[r.Method]
	switch {
	case !ok:
		return notSent("not a method that is judged")
	case !r.Decision.Allowed():
		return notSent("no decision allows this call")
	case r.Decision.Call.Method != want:
		return notSent("the decision is about another method")
	case !carries(r.Decision, r.Params):
		return notSent("the request is not what was decided on")
	}
	c, _, err := s.await(ctx)
	if err != nil {
		return notThere(err)
	}
	s.owned(r.Owner)
	if r.Method == "resources/subscribe" && c.modern.Load() {
		return c.subscribe(ctx, r)
	}
	return c.do(ctx, r, false)
}

// carries reports whether params are what the decision allowed: the tool and
// the very argument bytes, the answers that were judged, and beside them only
// the server's own opaque requestState (attack P20).
func carries(d *gate.Decision, params strictjson.Value) bool {
	wanted := d.Arguments
	if d.Call.Method == policy.CallTool {
		wanted = strictjson.Make()
		if d.Arguments.Exists() {
			wanted = strictjson.Make(strictjson.Member{Name: "arguments", Value: d.Arguments.Literal()})
		}
	}
	if params.Kind() != strictjson.Object || wanted.Kind() != strictjson.Object {
		return false
	}
	named := d.Call.Method == policy.CallTool || d.Call.Method == policy.GetPrompt
	found := 0
	for name, v := range params.Members() {
		w := wanted.Get(name)
		switch {
		case name == "requestState":
		case name == "inputResponses":
			if !d.Call.Answers.Exists() || !bytes.Equal(d.Call.Answers.Literal(), v.Raw()) {
				return false
			}
		case named && name == "name":
			if tool, ok := v.Text(); !ok || tool != d.Call.Tool {
				return false
			}
			named = false // seen
			if w.Exists() {
				found++
			}
		case w.Exists() && bytes.Equal(w.Literal(), v.Raw()):
			found++
		default:
			return false
		}
	}
	return !named && found == wanted.Len()
}

// notThere says that there is no server to send to. What one that died said last can hold
// secrets, and is for a person who asks: not for the client.
func notThere(err error) Response {
	if died(err) {
		return notSent("%s; nothing was sent. `writ status` in a terminal shows what it said last", err)
	}
	return notSent("%s", err)
}

// Do sends a request that needs no decision. When the connection was lost
// before anything was sent, it is tried once more on the next one.
func (s *Server) Do(ctx context.Context, r Request) Response {
	if !free[r.Method] {
		return notSent("a method that cannot be sent without a decision")
	}
	r.Decision = nil
	for try := 0; ; try++ {
		c, _, err := s.await(ctx)
		if err != nil {
			return notThere(err)
		}
		if r.Method == "resources/unsubscribe" && c.modern.Load() {
			return c.unsubscribe(r)
		}
		out := c.do(ctx, r, false)
		if out.End != NotSent || try > 0 || c.cause() == nil {
			return out
		}
	}
}

const (
	maxPages = 100
	maxItems = 2000
)

// List follows a list method to its end and returns the members of the array
// called key, raw and in the server's order. A list of more than 100 pages or 2,000 items, with a repeated
// cursor (attack T13), or with a name that stands twice (attack T04) is an
// ErrFaulty.
func (s *Server) List(ctx context.Context, method, key string) (out [][]byte, err error) {
	cursors, names := map[string]bool{}, map[string]bool{}
	var params strictjson.Value
	for page := 1; ; page++ {
		r := s.Do(ctx, Request{Method: method, Params: params})
		items, next := r.Result.Get(key), r.Result.Get("nextCursor")
		switch {
		case r.End != Answered:
			return nil, fmt.Errorf("%s: %s: %s", method, r.End, r.Err.Message)
		case r.Err != nil:
			return nil, r.Err
		case items.Kind() != strictjson.Array:
			return nil, fmt.Errorf("%w: the result has no array of %s", ErrFaulty, key)
		case len(out)+items.Len() > maxItems:
			return nil, fmt.Errorf("%w: more than %d items", ErrFaulty, maxItems)
		}
		for _, it := range items.Elements() {
			out = append(out, it.Raw())
			if key != "tools" && key != "prompts" {
				continue
			}
			name, _ := it.Get("name").Text()
			if name == "" {
				return nil, fmt.Errorf("%w: one of its %s has no name", ErrFaulty, key)
			} else if names[name] {
				return nil, fmt.Errorf("%w: two of its %s have one name", ErrFaulty, key)
			}
			names[name] = true
		}
		cursor, ok := next.Text()
		switch {
		case !next.Exists() || next.Kind() == strictjson.Null || ok && cursor == "": // some servers end their list so
			if key == "tools" {
				out = s.withoutBadHeaders(out)
			}
			return out, nil
		case !ok:
			return nil, fmt.Errorf("%w: nextCursor is not a string", ErrFaulty)
		case cursors[cursor]:
			return nil, fmt.Errorf("%w: a cursor came back", ErrFaulty)
		case page == maxPages:
			return nil, fmt.Errorf("%w: more than %d pages", ErrFaulty, maxPages)
		}
		cursors[cursor] = true
		params = strictjson.Make(strictjson.Member{Name: "cursor", Value: next.Raw()})
	}
}

// compose builds a call's message: the params as they are, with _meta in front.
func (c *conn) compose(k *call) error {
	r := &k.request
	switch {
	case r.Params.Exists() && r.Params.Kind() != strictjson.Object:
		return errors.New("params must be an object")
	case r.Params.Get("_meta").Exists():
		return errors.New("params must not have _meta")
	case r.Method == "tools/call", r.Method == "prompts/get":
		k.name, _ = r.Params.Get("name").Text()
	case r.Method == "resources/read":
		k.name, _ = r.Params.Get("uri").Text()
	}
	params := r.Params.Raw()
	if meta := c.meta(k); meta != nil {
		head := append(append([]byte(`{"_meta":`), meta...), ',')
		rest := []byte("}")
		if params != nil {
			rest = bytes.TrimLeft(bytes.TrimLeft(params, " \t\r\n")[1:], " \t\r\n")
		}
		if rest[0] == '}' {
			head = head[:len(head)-1]
		}
		params = append(head, rest...)
	}
	k.msg = rpc.Request(k.id, r.Method, params)
	if c.modern.Load() {
		k.headers = paramHeaders(r.ToolSchema, r.Params.Get("arguments"))
	}
	return nil
}

// meta returns the _meta object of a call, nil for none.
func (c *conn) meta(k *call) []byte {
	var ms []strictjson.Member
	if c.modern.Load() {
		can := k.request.ClientCapabilities
		if can == nil {
			can = c.s.cfg.ClientCapabilities
		}
		ms = append(ms,
			strictjson.Member{Name: metaPrefix + "protocolVersion", Value: strictjson.Quote(c.version)},
			strictjson.Member{Name: metaPrefix + "clientInfo", Value: c.s.clientInfo()},
			strictjson.Member{Name: metaPrefix + "clientCapabilities", Value: can})
	}
	if k.request.ProgressToken != nil {
		ms = append(ms, strictjson.Member{Name: "progressToken", Value: k.id})
	}
	for _, m := range k.request.Meta {
		own := strings.HasPrefix(m.Name, metaPrefix) && !(c.modern.Load() && m.Name == metaPrefix+"logLevel")
		if own || m.Name == "progressToken" || slices.ContainsFunc(ms, func(had strictjson.Member) bool { return had.Name == m.Name }) {
			continue
		}
		ms = append(ms, m)
	}
	if len(ms) == 0 {
		return nil
	}
	return strictjson.Make(ms...).Raw()
}
