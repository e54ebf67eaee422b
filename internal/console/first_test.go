package console

import (
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
)

// TestFirst: what there is to try is said by a page of a whole log that holds no decision,
// and by no other; whatever stands in it is text.
func TestFirst(t *testing.T) {
	r := newRig(t)
	cookie, _, _ := r.in()
	says := func(path string) bool {
		t.Helper()
		w := r.ask("GET", path, cookie, nil)
		if w.Code != 200 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "<img") {
			t.Errorf("%s: markup came in", path)
		}
		return strings.Contains(w.Body.String(), `class="first"`)
	}
	if says("/") {
		t.Error("nothing is there to try, and it says so")
	}
	r.o.Try = []Try{{Title: hostileText, Says: hostileText, Commands: []string{"writ call a", "writ call b<img>"}, Ends: "refused", Shows: hostileText}}
	for _, records := range []int{0, 2} {
		if records > 0 {
			r.write("s_aaaaaaaaaaaaaaaa", open, open)
		}
		for path, want := range map[string]bool{"/": true, "/?again": true, "/?status=": true, "/?status=refused": false, "/?tool=x": false, "/?session=x": false, "/?reason=x": false,
			"/?before=0": false, "/audit": false} {
			if got := says(path); got != want {
				t.Errorf("%d records, %s: %t", records, path, got)
			}
		}
	}
	r.write("s_bbbbbbbbbbbbbbbb", open, decided(gate.Record{Server: "a", Tool: "b", Status: writ.Accepted, Allowed: true}, `{}`))
	if says("/") {
		t.Error("something was decided")
	}
}

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
