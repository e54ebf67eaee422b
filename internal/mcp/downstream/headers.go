package downstream

import (
	"encoding/base64"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// Header fields of MCP and of Writ.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
	headerLastID  = "Last-Event-Id"
)

// HeaderSession carries a session that `writ session new` made, for clients that
// can send a header: unlike a path, nothing logs it by habit.
const HeaderSession = "Writ-Session"

// once lists the fields two readers could read differently if they stood twice.
var once = []string{
	headerVersion, headerSession, HeaderSession, headerMethod, headerName, headerLastID,
	"Authorization", "Origin", "Content-Type", "Content-Encoding",
}

// checkHeaders bounds the number of fields and refuses critical ones that stand
// twice.
func checkHeaders(h http.Header) *refused {
	n := 0
	for k, v := range h {
		n += len(v)
		if len(v) > 1 && strings.HasPrefix(k, headerParam) {
			return noMirrorTwice
		}
	}
	if n > 100 {
		return noHeaders
	}
	for _, k := range once {
		if len(h[k]) > 1 {
			if strings.HasPrefix(k, "Mcp-") && k != headerSession {
				return noMirrorTwice
			}
			return noTwice
		}
	}
	return nil
}

// Foreign says why a request is none of a page of its own, and what to do about it: it names none of the hosts, or a page
// of another origin made it (S01, S02, S03). "" where it is one. It is for what else is served
// beside MCP. https says that browsers reach the hosts by TLS, which a proxy may have taken off.
func Foreign(r *http.Request, hosts []string, https bool) string {
	switch {
	case !strings.HasPrefix(r.RequestURI, "/") || !hostAllowed(r.Host, hosts):
		return "The request names another host, or another port: open the address as it was given to you. A proxy hands on the host as it came."
	case checkHeaders(r.Header) != nil:
		return "The request's header is none that a browser sends."
	case !originAllowed(r, https):
		return "A page of another site led here: type the address, or take it from your bookmarks."
	}
	return ""
}

// Proxied reports whether a request shows that a proxy passed it on: by a field that proxies add,
// or as HTTP/1.0, which some speak and no client of MCP does. That it does not proves nothing.
func Proxied(r *http.Request) bool {
	for k := range r.Header {
		if strings.HasPrefix(k, "X-Forwarded-") || k == "Forwarded" || k == "Via" || k == "X-Real-Ip" {
			return true
		}
	}
	return !r.ProtoAtLeast(1, 1)
}

// hostAllowed compares a Host header with the allow-list: an entry with a port
// is compared whole, one without matches every port.
func hostAllowed(host string, allowed []string) bool {
	host = strings.ToLower(host)
	name := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		if _, err := strconv.ParseUint(host[i+1:], 10, 16); err != nil {
			return false
		}
		name = host[:i]
	}
	for _, a := range allowed {
		a = strings.ToLower(a)
		if a != "" && (a == host || a == name) {
			return true
		}
	}
	return false
}

// originAllowed lets through a request without Origin, and one of this very host
// (which hostAllowed has passed). Browsers that say a request is cross-site are believed.
func originAllowed(r *http.Request, https bool) bool {
	vs, stated := r.Header["Origin"]
	if !stated {
		site := r.Header.Get("Sec-Fetch-Site")
		return site == "" || site == "same-origin" || site == "none"
	}
	if len(vs) != 1 {
		return false
	}
	u, err := url.Parse(vs[0])
	scheme := "http"
	if https {
		scheme = "https"
	}
	return err == nil && u.Scheme == scheme && vs[0] == scheme+"://"+r.Host
}

// jsonContent accepts application/json, in UTF-8 if it says so, and nothing
// else (S02, W06).
func jsonContent(h http.Header) bool {
	t, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || t != "application/json" {
		return false
	}
	for k, v := range params {
		if k != "charset" || !strings.EqualFold(v, "utf-8") {
			return false
		}
	}
	return true
}

// accepts says which of the two answers a client takes.
func accepts(h http.Header) (json, stream bool) {
	for _, v := range h["Accept"] {
		for _, x := range strings.Split(v, ",") {
			t, params, _ := strings.Cut(x, ";")
			if refusedByWeight(params) {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(t)) {
			case "application/json", "application/*":
				json = true
			case "text/event-stream", "text/*":
				stream = true
			case "*/*":
				json, stream = true, true
			}
		}
	}
	return json, stream
}

func refusedByWeight(params string) bool {
	for _, p := range strings.Split(params, ";") {
		if k, v, _ := strings.Cut(strings.TrimSpace(p), "="); strings.EqualFold(k, "q") {
			if f, err := strconv.ParseFloat(v, 64); err != nil || f == 0 {
				return true
			}
		}
	}
	return false
}

// decodeHeader resolves the base64 sentinel of a header value.
func decodeHeader(v string) (string, bool) {
	x, ok := strings.CutPrefix(v, "=?base64?")
	if !ok {
		return v, true
	}
	x, ok = strings.CutSuffix(x, "?=")
	if !ok {
		return v, true
	}
	b, err := base64.StdEncoding.Strict().DecodeString(x)
	return string(b), err == nil
}

// nameMember is the member of params that Mcp-Name repeats.
func nameMember(method string) string {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	}
	return ""
}

// checkMirror holds Mcp-Method and Mcp-Name against the body (W10).
func checkMirror(h http.Header, method string, params strictjson.Value) *refused {
	switch h.Get(headerMethod) {
	case "":
		return noMethodHeader
	case method:
	default:
		return noMethodEqual
	}
	member := nameMember(method)
	if member == "" {
		return nil
	}
	v := h.Get(headerName)
	if v == "" {
		return noNameHeader
	}
	got, ok := decodeHeader(v)
	want, isText := params.Get(member).Text()
	if !ok || !isText || got != want {
		return noNameEqual
	}
	return nil
}

// paramHeaders decodes the Mcp-Param-* fields.
func paramHeaders(h http.Header) (map[string]string, *refused) {
	out := map[string]string{}
	for k, v := range h {
		name, ok := strings.CutPrefix(k, headerParam)
		if !ok {
			continue
		}
		s, ok := decodeHeader(v[0])
		if !ok {
			return nil, noParamHeader
		}
		out[strings.ToLower(name)] = s
	}
	return out, nil
}

// CheckParamHeaders holds the Mcp-Param-* headers of a tools/call against its
// arguments, by the x-mcp-header names in the tool's input schema: each named
// argument that is given is repeated in its header, and each such header
// repeats a given argument. It returns nil or the error to answer, which names
// neither.
func CheckParamHeaders(schema, arguments strictjson.Value, headers map[string]string) *rpc.Error {
	bad := false
	eachParamHeader(schema, nil, 0, func(path []string, name string) {
		v := arguments
		for _, p := range path {
			v = v.Get(p)
		}
		got, given := headers[strings.ToLower(name)]
		if !v.Exists() || v.Kind() == strictjson.Null {
			bad = bad || given
			return
		}
		bad = bad || !given || !sameParam(got, v)
	})
	if bad {
		return rpc.Errorf(rpc.CodeHeaderMismatch, "an Mcp-Param header is missing, or does not equal its argument in the body")
	}
	return nil
}

func eachParamHeader(schema strictjson.Value, path []string, depth int, f func(path []string, name string)) {
	if depth > 32 {
		return
	}
	for property, s := range schema.Get("properties").Members() {
		at := append(path[:len(path):len(path)], property)
		if name, ok := s.Get("x-mcp-header").Text(); ok && name != "" {
			f(at, name)
		}
		eachParamHeader(s, at, depth+1, f)
	}
}

// sameParam compares a header with a string, boolean or safe integer.
func sameParam(header string, v strictjson.Value) bool {
	switch v.Kind() {
	case strictjson.String:
		s, ok := v.Text()
		return ok && s == header
	case strictjson.Bool:
		return header == string(v.Raw())
	case strictjson.Number:
		a, err := strconv.ParseFloat(string(v.Raw()), 64)
		b, err2 := strconv.ParseFloat(header, 64)
		return err == nil && err2 == nil && a == b && a == math.Trunc(a) && math.Abs(a) < 1<<53
	}
	return false
}
