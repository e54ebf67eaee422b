package gateway_test

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/strictjson"
)

// FuzzBody posts any bytes to the gateway. Whatever they are, it answers, what
// it answers is strict JSON, and a server is asked exactly for the calls that
// the log allows.
func FuzzBody(f *testing.F) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, params := range []string{
		`{"name":"list_items","arguments":{},` + meta + `}`, `{"name":"delete_item","arguments":{"id":"item-17"},` + meta + `}`,
		`{"name":"delete_item","arguments":{"id":"item-17","id":"x"},` + meta + `}`, `{"name":"delete_item","arguments":null,` + meta + `}`,
		`{"name":"list_items","Arguments":{},` + meta + `}`, `{"name":"list_items","inputResponses":{},"requestState":"x",` + meta + `}`,
		`{"name":"list_items","arguments":{"a":1e400},` + meta + `}`, `{` + meta + `}`, `{"name":7,` + meta + `}`,
		`{"name":"list_items","arguments":{"a":"\ud800"},` + meta + `}`,
	} {
		f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`), "tools/call", "list_items")
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`,"cursor":"x"}}`), "tools/list", "")
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{`+meta+`,"uri":"file:///etc/passwd"}}`), "resources/read", "file:///etc/passwd")

	up := newScripted(f, "toy", true)
	up.list("tools/list", itemTools)
	up.during = func(received, func(string)) { up.answerWith(itemList) }
	st := onMaps(f)
	r := newRig(f, st, policy(f, itemPolicy), up.config(true))
	secret := r.mint()
	f.Fuzz(func(t *testing.T, body []byte, method, name string) {
		before := allowed(t, st)
		up.take()
		for _, modern := range []bool{true, false} {
			req := httptest.NewRequest("POST", "http://127.0.0.1/mcp/s/"+secret, bytes.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json")
			if modern {
				req.Header.Set("MCP-Protocol-Version", "2026-07-28")
				req.Header.Set("Mcp-Method", method)
				if name != "" {
					req.Header.Set("Mcp-Name", name)
				}
			}
			w := httptest.NewRecorder()
			r.http.ServeHTTP(w, req)
			if b := w.Body.Bytes(); len(b) > 0 && strictjson.Check(b, strictjson.Result) != nil {
				t.Errorf("answered %q", b)
			}
		}
		if got, want := len(up.take()), allowed(t, st)-before; got != want {
			t.Errorf("%d requests reached the server, the log allows %d", got, want)
		}
	})
}

// allowed counts the accepted decisions of a log.
func allowed(t testing.TB, st interface {
	audit.Store
	audit.Sessions
}) (n int) {
	eachRecord(t, st, func(rec *audit.Record, _ *audit.Item) {
		if rec.Kind == audit.KindDecision && text(rec.Data, "status") != "rejected" {
			n++
		}
	})
	return n
}
