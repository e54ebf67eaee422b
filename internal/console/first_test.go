package console

import (
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
)

// TestFirstIsFollowed: a page of a log without a record offers addresses that are there, and
// is told of the first decision whenever that came.
func TestFirstIsFollowed(t *testing.T) {
	r := newRig(t)
	cookie, _, _ := r.in()
	body := r.ask("GET", "/", cookie, nil).Body.String()
	if strings.Contains(body, "after=-") {
		t.Errorf("it offers a place that is none: %s", body)
	}
	_, tail, _ := strings.Cut(body, `data-tail="`)
	tail, _, ok := strings.Cut(tail, `"`)
	if !ok {
		t.Fatalf("it follows nothing: %s", body)
	}
	r.write("s_aaaaaaaaaaaaaaaa", open, decided(gate.Record{Server: "a", Tool: "first", Status: writ.Accepted, Allowed: true}, `{}`))
	close(r.end) // the stream ends when it has told what is there
	for path, want := range map[string]bool{tail: true, "/events": false, "/events?after=1": false} {
		w := r.ask("GET", strings.ReplaceAll(path, "&amp;", "&"), cookie, nil)
		if got := strings.Contains(w.Body.String(), "first"); w.Code != 200 || got != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
