package downstream

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// Methods and members this package itself knows.
const (
	methodInitialize = "initialize"
	methodPing       = "ping"
	methodDiscover   = "server/discover"
	methodListen     = "subscriptions/listen"

	noteInitialized  = "notifications/initialized"
	noteCancelled    = "notifications/cancelled"
	noteLog          = "notifications/message"
	noteAcknowledged = "notifications/subscriptions/acknowledged"

	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// gone says which methods of the legacy wire 2026-07-28 took away.
func goneInModern(method string) bool {
	switch method {
	case methodInitialize, methodPing, "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		return true
	}
	return false
}

func isLegacy(version string) bool {
	return version != Version20260728 && slices.Contains(Versions, version)
}

// meta is what params._meta says about the request itself.
type meta struct {
	stated       bool   // a protocolVersion member stands there
	version      string // "" unless it is a string
	capabilities strictjson.Value
	clientInfo   strictjson.Value
	logLevel     []byte
	token        []byte
}

// readMeta reads params._meta. It fails where a member is of the wrong kind,
// so that no later reader can understand it otherwise.
func readMeta(params strictjson.Value) (meta, *refused) {
	var m meta
	v := params.Get("_meta")
	if !v.Exists() {
		return m, nil
	}
	if v.Kind() != strictjson.Object {
		return m, noMetaObject
	}
	for name, x := range v.Members() {
		switch name {
		case metaVersion:
			m.stated = true
			m.version, _ = x.Text()
		case metaCapabilities:
			m.capabilities = x
		case metaClientInfo:
			m.clientInfo = x
		case metaLogLevel:
			if x.Kind() == strictjson.String {
				m.logLevel = x.Raw()
			}
		case "progressToken":
			if !rpc.ValidID(x) {
				return m, noToken
			}
			m.token = x.Raw()
		}
	}
	return m, nil
}

// modern reports a request that says of itself that it is not legacy: its
// version is 2026-07-28, or one nobody knows.
func (m *meta) modern() bool { return m.stated && !isLegacy(m.version) }

// checkModern holds a request against what 2026-07-28 demands of its _meta.
func (m *meta) checkModern() *refused {
	switch {
	case !m.stated || m.version == "":
		return noMeta
	case m.version != Version20260728:
		return noVersion(m.version)
	case m.capabilities.Kind() != strictjson.Object, m.clientInfo.Exists() && m.clientInfo.Kind() != strictjson.Object:
		return noMeta
	}
	return nil
}

// hello is what a legacy initialize says and is answered.
type hello struct {
	version      string // negotiated
	capabilities strictjson.Value
}

// newRequest is a message as the Router gets it: of a connection that was greeted so, or, with
// nil, of 2026-07-28. It has no Peer until it is handled.
func newRequest(m rpc.Message, mt meta, greeted *hello, principal string, s Session) *Request {
	r := &Request{
		Method: m.Method, Params: m.Params, ID: m.ID, Era: Modern, Version: Version20260728, Principal: principal, Session: s,
		ClientCapabilities: mt.capabilities, ProgressToken: mt.token, LogLevel: mt.logLevel,
	}
	if greeted != nil {
		r.Era, r.Version, r.ClientCapabilities, r.LogLevel = Legacy, greeted.version, greeted.capabilities, nil
	}
	return r
}

// maxHello bounds what one connection says of itself.
const maxHello = 64 << 10

// readHello reads initialize. A version we know is echoed exactly; for any
// other we offer our newest legacy one.
func readHello(params strictjson.Value) (hello, *refused) {
	h := hello{version: Version20251125}
	asked, ok := params.Get("protocolVersion").Text()
	can, info := params.Get("capabilities"), params.Get("clientInfo")
	if !ok || asked == "" || can.Kind() != strictjson.Object || info.Exists() && info.Kind() != strictjson.Object ||
		len(can.Raw())+len(info.Raw()) > maxHello {
		return h, noInitParams
	}
	// Kept for as long as the connection: not with the whole message (D03).
	h.capabilities = strictjson.Of(bytes.Clone(can.Raw()))
	if isLegacy(asked) {
		h.version = strings.Clone(asked)
	}
	return h, nil
}

// answerHello is the result of initialize.
func answerHello(ctx context.Context, r Router, version string) []byte {
	caps, info, text := r.Describe(ctx)
	b := append([]byte(`{"protocolVersion":`), strictjson.Quote(version)...)
	b = append(append(b, `,"capabilities":`...), caps...)
	b = append(append(b, `,"serverInfo":`...), info...)
	if text != "" {
		b = append(append(b, `,"instructions":`...), strictjson.Quote(text)...)
	}
	return append(b, '}')
}

// answerDiscover is the result of server/discover. It is for this client only
// and not to be kept: what is listed may differ between principals.
func answerDiscover(ctx context.Context, r Router) []byte {
	caps, info, text := r.Describe(ctx)
	b := append([]byte(`{"resultType":"complete","supportedVersions":`), versionList...)
	b = append(append(b, `,"capabilities":`...), caps...)
	if text != "" {
		b = append(append(b, `,"instructions":`...), strictjson.Quote(text)...)
	}
	b = append(b, `,"ttlMs":0,"cacheScope":"private","_meta":{`...)
	b = append(append(append(b, strictjson.Quote(metaServerInfo)...), ':'), info...)
	return append(b, "}}"...)
}

// withMeta returns params with one member of _meta set, every other value as
// it stood.
func withMeta(params []byte, key string, value []byte) []byte {
	begin := func(in []byte, first strictjson.Member) []byte {
		all, _ := strictjson.Members(in)
		all = slices.DeleteFunc(all, func(m strictjson.Member) bool { return m.Name == first.Name })
		return strictjson.Make(slices.Insert(all, 0, first)...).Raw()
	}
	meta := begin(strictjson.Get(params, "_meta"), strictjson.Member{Name: key, Value: value})
	return begin(params, strictjson.Member{Name: "_meta", Value: meta})
}

// oneLine returns a message without line breaks, which end a message on stdio
// and a field in an event stream (W13). In JSON they stand only between tokens.
func oneLine(b []byte) []byte {
	if bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	b = bytes.Clone(strictjson.Compact(b))
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return b
}

// MayAsk reports whether a client of that version and those capabilities may be
// sent this request (T16 the other way round).
func MayAsk(version string, capabilities strictjson.Value, method string, params []byte) bool {
	switch method {
	case methodPing:
		return true
	case "roots/list":
		return capabilities.Get("roots").Kind() == strictjson.Object
	case "sampling/createMessage":
		c := capabilities.Get("sampling")
		if c.Kind() != strictjson.Object {
			return false
		}
		return strictjson.Get(params, "tools") == nil || c.Get("tools").Kind() == strictjson.Object
	case "elicitation/create":
		c := capabilities.Get("elicitation")
		if c.Kind() != strictjson.Object || strings.Compare(version, Version20250618) < 0 {
			return false
		}
		if mode, _ := strictjson.Text(strictjson.Get(params, "mode")); mode == "url" {
			return version >= Version20251125 && c.Get("url").Kind() == strictjson.Object
		}
		return c.Len() == 0 || c.Get("form").Kind() == strictjson.Object
	}
	return false
}

// readFilter reads what subscriptions/listen asks for.
func readFilter(params strictjson.Value) (Filter, *refused) {
	var f Filter
	asked := params.Get("notifications")
	if asked.Kind() != strictjson.Object {
		return f, noListenParams
	}
	for _, flag := range f.flags() {
		v := asked.Get(flag.name)
		if v.Exists() && v.Kind() != strictjson.Bool {
			return f, noListenParams
		}
		*flag.on = string(v.Raw()) == "true"
	}
	uris := asked.Get(resourceSubscriptions)
	if uris.Exists() && uris.Kind() != strictjson.Array || uris.Len() > 1000 {
		return f, noListenParams
	}
	for _, e := range uris.Elements() {
		uri, ok := e.Text()
		if !ok {
			return f, noListenParams
		}
		f.URIs = append(f.URIs, strings.Clone(uri)) // kept for as long as the stream
	}
	return f, nil
}

// wish is a part of a filter that is granted or not, as the wire calls it.
type wish struct {
	name string
	on   *bool
}

func (f *Filter) flags() [3]wish {
	return [...]wish{{"toolsListChanged", &f.Tools}, {"promptsListChanged", &f.Prompts}, {"resourcesListChanged", &f.Resources}}
}

const resourceSubscriptions = "resourceSubscriptions"

// within returns what of f was asked for in want: a Router cannot grant more
// than that.
func (f Filter) within(want Filter) Filter {
	g := Filter{Tools: f.Tools && want.Tools, Prompts: f.Prompts && want.Prompts, Resources: f.Resources && want.Resources}
	for _, u := range f.URIs {
		if slices.Contains(want.URIs, u) && !slices.Contains(g.URIs, u) {
			g.URIs = append(g.URIs, u)
		}
	}
	return g
}

func (f Filter) empty() bool { return !f.Tools && !f.Prompts && !f.Resources && len(f.URIs) == 0 }

// Admits reports whether a notification is one the filter grants.
func (f Filter) Admits(method string, params []byte) bool {
	switch method {
	case "notifications/tools/list_changed":
		return f.All || f.Tools
	case "notifications/prompts/list_changed":
		return f.All || f.Prompts
	case "notifications/resources/list_changed":
		return f.All || f.Resources
	case "notifications/resources/updated":
		if f.All {
			return true
		}
		uri, ok := strictjson.Text(strictjson.Get(params, "uri"))
		return ok && slices.ContainsFunc(f.URIs, func(u string) bool {
			return uri == u || strings.HasPrefix(uri, u+"/") // a part of what was subscribed to
		})
	}
	return f.All
}

// encode is the object of the acknowledgement.
func (f Filter) encode() []byte {
	var parts [][]byte
	for _, flag := range f.flags() {
		if *flag.on {
			parts = append(parts, []byte(`"`+flag.name+`":true`))
		}
	}
	if len(f.URIs) > 0 {
		var us [][]byte
		for _, u := range f.URIs {
			us = append(us, strictjson.Quote(u))
		}
		parts = append(parts, slices.Concat([]byte(`"`+resourceSubscriptions+`":[`), bytes.Join(us, []byte(",")), []byte("]")))
	}
	return slices.Concat([]byte("{"), bytes.Join(parts, []byte(",")), []byte("}"))
}

// listenEnd is the result of subscriptions/listen, sent when we end it.
func listenEnd(id []byte) []byte {
	return slices.Concat([]byte(`{"resultType":"complete","_meta":{"`+metaSubscription+`":`), id, []byte("}}"))
}

// acknowledgement is the first message of a subscriptions/listen stream.
func acknowledgement(id []byte, granted Filter) []byte {
	params := slices.Concat([]byte(`{"notifications":`), granted.encode(), []byte("}"))
	return rpc.Notification(noteAcknowledged, withMeta(params, metaSubscription, id))
}

// isNote reports the name of a notification. Nothing else is one, whatever it
// lacks: a tools/call without an id is not acted on.
func isNote(method string) bool { return strings.HasPrefix(method, "notifications/") }

// batches reports a version whose clients may send batches: 2025-03-26 only.
func batches(version string) bool { return version == Version20250326 }

// maxBatch is the cap of W08.
const maxBatch = 50

// splitBatch returns the messages of a batch, each to be judged singly.
func splitBatch(text []byte, l strictjson.Limits) (batch strictjson.Value, bad *refused) {
	batch, err := strictjson.Parse(text, l)
	if err != nil {
		_, e := rpc.Parse(text, l)
		return batch, noMessage(e)
	}
	if n := batch.Len(); batch.Kind() != strictjson.Array || n == 0 || n > maxBatch {
		return batch, noBigBatch
	}
	for _, e := range batch.Elements() {
		if m, _ := e.Get("method").Text(); m == methodInitialize {
			return batch, noBigBatch
		}
	}
	return batch, nil
}

// gather collects the answers to a batch of n messages and sends those there
// are as one array, in the order of the messages and not of their ends, so
// that the same batch is answered alike every time. The reply for message i
// is the result's reply i.
func gather(n int, send reply) func(i int) reply {
	var mu sync.Mutex
	got := make([][]byte, n)
	left := n
	return func(i int) reply {
		return func(message []byte) {
			mu.Lock()
			defer mu.Unlock()
			got[i] = message
			if left--; left > 0 {
				return
			}
			said := slices.DeleteFunc(got, func(m []byte) bool { return m == nil })
			if len(said) == 0 {
				send(nil)
				return
			}
			send(slices.Concat([]byte("["), bytes.Join(said, []byte(",")), []byte("]")))
		}
	}
}
