package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/policy"
)

const one = "s_aaaaaaaaaaaaaaaa"

// put asks a question, and returns when it waits.
func (r *rig) put(q approval.Question, key string, effects approval.Effects) approval.Question {
	r.t.Helper()
	before, changed := r.queue.Open()
	if effects.Settle == nil {
		effects.Settle = func(approval.Answer, *approval.Offer) error { return nil }
	}
	go r.queue.Ask(r.t.Context(), q, key, time.Hour, effects, nil)
	for {
		qs, next := r.queue.Open()
		if len(qs) > len(before) {
			return qs[len(qs)-1]
		}
		if next == changed {
			<-changed
		}
		changed = next
	}
}

// TestManyValues: how long a page of a call is, and how long it takes, is not what the call
// chooses.
func TestManyValues(t *testing.T) {
	const n = 20000
	r := newRig(t)
	var args bytes.Buffer
	d := gate.Record{Server: "a", Tool: "b", Status: writ.Rejected, Code: writ.MissingProvenance, Reason: writ.ProvenanceUnseen}
	for i := range n {
		fmt.Fprintf(&args, `,"doc-%05d"`, i)
		at := fmt.Sprintf("/ids/%d", i)
		d.Failures = append(d.Failures, writ.Failure{Reason: writ.ProvenanceUnseen, Pointer: at, Need: "seen"})
		d.Traces = append(d.Traces, gate.Trace{Pointer: at, Role: "selector", Label: writ.Model})
	}
	bad := decided(d, `{"ids":[`+args.String()[1:]+`]}`)
	r.write(one, open, decided(gate.Record{Server: "a", Tool: "read", Status: writ.Accepted, Allowed: true, Effect: []string{"read"}}, `{}`),
		returned(2, 1, "ok", `{"structuredContent":{"rows":["doc-00003"`+strings.Repeat(`,"a row"`, 10000)+`]}}`), bad, bad, bad)
	cookie, _, _ := r.in()
	for path, says := range map[string]string{"/": "provenance.unseen", "/d/" + one + "/4": "19800 more are in", "/s/" + one: "and 19976 more"} {
		w := r.ask("GET", path, cookie, nil)
		if w.Code != 200 || w.Body.Len() > 3*maxDrawn || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
		if path == "/" && strings.Contains(w.Body.String(), "<li>") {
			t.Error("a row of a list reads a decision of any length")
		}
		if strings.Count(w.Body.String(), "<li>") > maxLines+10 {
			t.Errorf("%s: %d lines", path, strings.Count(w.Body.String(), "<li>"))
		}
	}
	if w := r.ask("GET", "/s/"+one, cookie, nil); !strings.Contains(w.Body.String(), `class="edge stranger"`) {
		t.Error("where a value stands is not drawn")
	}
	// A search ends with its room, and with who asked.
	seen := []story.Sight{{Number: 1, N: 1, Tool: "x", Bytes: []byte(`["` + strings.Repeat("x", 1<<20) + `"]`)}}
	var many []*story.Wanted
	for range 2 * story.MaxSearch >> 20 {
		many = append(many, story.Wants([]byte(`"yyy"`), 2))
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	search := func(ctx context.Context, values []*story.Wanted) bool {
		room := story.MaxSearch
		return story.Sought(ctx, values, seen, &room)
	}
	if search(t.Context(), many) || search(over, many[:1]) || !search(t.Context(), many[:1]) {
		t.Error("the bounds of a search")
	}
}

// TestEnds: a row says how its call ended wherever that stands, also to who pages (and a
// page that is open is told).
func TestEnds(t *testing.T) {
	r := newRig(t)
	yes := decided(gate.Record{Server: "a", Tool: "x", Status: writ.Accepted, Allowed: true}, `{}`)
	r.write(one, open, yes)
	var noise []record
	for range 3 * atOnce {
		noise = append(noise, yes)
	}
	r.write("s_bbbbbbbbbbbbbbbb", open)
	r.write("s_bbbbbbbbbbbbbbbb", noise...)
	size := 3*atOnce + 3
	end := record{audit.KindResult, map[string]any{"decision": 2, "status": "unknown"}, nil}
	cookie, _, _ := r.in()
	srv := httptest.NewServer(r)
	defer srv.Close()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("%s/events?after=%d", srv.URL, size-1), nil)
	req.Host = host
	req.AddCookie(&http.Cookie{Name: r.cookie(false), Value: cookie})
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r.write(one, end)
	told, buf := "", make([]byte, 1<<10)
	for !strings.Contains(told, `"unknown"`) {
		n, err := resp.Body.Read(buf)
		if told += string(buf[:n]); err != nil {
			t.Fatalf("%v: %s", err, told)
		}
	}
	if !strings.Contains(told, "event: outcome\n") || !strings.Contains(told, one+"/2") {
		t.Errorf("an open page is told %s", told)
	}
	for path, want := range map[string]bool{"/?before=3": true, "/?after=0": true, "/?before=2&status=accepted": false, "/audit?after=0&session=" + one: true} {
		page := r.ask("GET", path, cookie, nil).Body.String()
		_, row, ok := strings.Cut(page, `<tr data-index="1">`)
		row, _, _ = strings.Cut(row, "</tr>")
		if ok != want || ok && !strings.Contains(row, `<span class="word unknown">`) {
			t.Errorf("%s: %s", path, row)
		}
	}
}

// stuck is a reader that reads nothing: a write to it ends by its deadline alone.
type stuck struct {
	*httptest.ResponseRecorder
	once    sync.Once
	writing chan struct{}
	over    chan struct{}
}

func (s *stuck) SetWriteDeadline(t time.Time) error {
	if time.Until(t) <= 0 {
		s.once.Do(func() { close(s.over) })
	}
	return nil
}

func (s *stuck) Write([]byte) (int, error) {
	close(s.writing)
	<-s.over
	return 0, os.ErrDeadlineExceeded
}

// TestPausedDownload: a download of the log that is not read on ends with its login, also with
// that login's client.
func TestPausedDownload(t *testing.T) {
	r := newRig(t)
	r.register(map[string]writ.Label{"kim": writ.User})
	var failed error
	r.o.Export = func(_ context.Context, w io.Writer) error { _, failed = w.Write([]byte("x")); return failed }
	near, form, _ := r.in()
	far, _ := r.signed("kim")
	for _, x := range []struct {
		host, cookie string
		end          func()
	}{
		{host, r.cookie(false) + "=" + near, func() { r.ask("POST", "/logout", near, url.Values{"form": {form}}) }},
		{public, r.cookie(true) + "=" + far, func() { r.register(nil) }},
	} {
		failed = nil
		req := httptest.NewRequest("GET", "http://"+x.host+"/audit/export", nil).WithContext(t.Context())
		req.RequestURI = "/audit/export"
		req.Header.Set("Cookie", x.cookie)
		w := &stuck{ResponseRecorder: httptest.NewRecorder(), writing: make(chan struct{}), over: make(chan struct{})}
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			r.ServeHTTP(w, req)
		}()
		<-w.writing
		x.end()
		if got := <-ended; got != http.ErrAbortHandler || failed == nil {
			t.Errorf("%s: it ended with %v, %v: half a file looks like a whole one", x.host, got, failed)
		}
	}
}

// TestManyCards: what is drawn of what waits has a bound, for a card and for all, whatever
// part of a question is long.
func TestManyCards(t *testing.T) {
	hidden := strings.Repeat("\u202e", 20000)
	var seen []gate.AskedValue
	for i := range 50 {
		v := gate.AskedValue{Pointer: fmt.Sprint("/a/", i), Raw: []byte(`"x"`), Reason: writ.ProvenanceLabel}
		for range 5 {
			v.Seen = append(v.Seen, gate.Ref{Tool: "a/b", Pointer: "/" + hidden})
		}
		seen = append(seen, v)
	}
	many := make([]gate.AskedValue, maxDrawn)
	for name, q := range map[string]approval.Question{
		"hidden characters": {Tool: "t", Arguments: []byte(`{"x":"` + hidden + `"}`)}, "where it was seen": {Tool: "t", Arguments: []byte(`{}`), Values: seen},
		"its name": {Tool: hidden, Arguments: []byte(`{}`)}, "values": {Tool: "t", Arguments: []byte(`{}`), Values: many},
	} {
		r := newRig(t)
		q.Session, q.Server = one, "a"
		r.put(q, "1", approval.Effects{})
		cookie, _, _ := r.in()
		if w := r.ask("GET", "/approvals", cookie, nil); w.Body.Len() > maxDrawn || strings.Contains(w.Body.String(), `value="yes"`) || !strings.Contains(w.Body.String(), `value="no"`) {
			t.Errorf("%s: %d bytes", name, w.Body.Len())
		}
	}
	r := newRig(t)
	for i := range 12 {
		r.put(approval.Question{Session: fmt.Sprintf("s_aaaaaaaaaaaaaaa%c", 'a'+i), Server: "a", Tool: "t", Arguments: []byte(`{"x":"` + strings.Repeat("y", maxDrawn/2) + `"}`)}, fmt.Sprint(i), approval.Effects{})
	}
	cookie, _, _ := r.in()
	if w := r.ask("GET", "/approvals", cookie, nil); w.Body.Len() > 2*maxPage || !strings.Contains(w.Body.String(), "more wait") {
		t.Errorf("%d bytes", w.Body.Len())
	}
}

// TestHiddenOffer: nothing is kept that no card showed.
func TestHiddenOffer(t *testing.T) {
	r := newRig(t)
	q := r.put(approval.Question{Session: one, Server: "a", Tool: "t", Arguments: []byte(`{}`)}, "1", approval.Effects{
		Offers: func() []approval.Offer {
			return []approval.Offer{{Keep: approval.KeepSource, Lines: []policy.Grown{{From: strings.Repeat("x\n", 40000)}}}}
		}})
	cookie, form, code := r.in()
	if w := r.ask("GET", "/approvals", cookie, nil); strings.Contains(w.Body.String(), `name="keep"`) {
		t.Fatal("it is shown")
	}
	w := r.ask("POST", "/approvals/"+q.ID, cookie, url.Values{"form": {form}, "say": {"keep"}, "keep": {"source"}, "code": {code}})
	if page := r.ask("GET", w.Header().Get("Location"), cookie, nil).Body.String(); !strings.Contains(page, "That was not offered") {
		t.Errorf("it says %s", page)
	}
	if qs, _ := r.queue.Open(); len(qs) != 1 {
		t.Error("it was answered")
	}
}

// TestManyTools: how long the pages of the tools are is not what a server chooses, and what
// is left out is told. Calls are counted by tool, outcome and reason.
func TestManyTools(t *testing.T) {
	r := newRig(t)
	no := decided(gate.Record{Server: "a", Tool: "b", Status: writ.Rejected, Code: writ.MissingProvenance, Reason: writ.ProvenanceUnseen}, `{}`)
	yes := decided(gate.Record{Server: "a", Tool: "b", Status: writ.Accepted, Allowed: true}, `{}`)
	r.write(one, open, no, no, yes, decided(gate.Record{Server: "a", Tool: "b", Status: writ.Rejected, Code: writ.PolicyViolation, Reason: writ.ApprovalPending}, `{}`), yes, returned(6, 1, "unknown", `{}`))
	long := strings.Repeat("\u202e", 1<<20)
	all := make([]string, 5000)
	for i := range all {
		all[i] = long
	}
	servers := []Server{{Name: "a", Reached: "over stdio", Notes: all, Tools: []Tool{{ID: "a/b", State: "open"}}}}
	for range 10 {
		s := Server{Name: "b", Fault: long}
		for i := range 5000 {
			s.Tools = append(s.Tools, Tool{ID: fmt.Sprintf("b/t%04d", i), State: "closed", Why: long})
		}
		servers = append(servers, s)
	}
	r.o.Servers = func(context.Context) ([]Server, error) { return servers, nil }
	r.o.Contract = func(context.Context, string) (*Contract, error) {
		c := &Contract{Tool: Tool{ID: "a/b", Why: long, Pin: "changed"}, Unnamed: all, Of: "x", Unlike: all, Definition: []byte(long), Drafted: []byte(long)}
		for range 5000 {
			c.Arguments = append(c.Arguments, Rule{long, "target", []string{long}, 0})
		}
		return c, nil
	}
	r.o.Learned = func(context.Context, string) (*Learned, error) {
		return &Learned{slices.Repeat([]Edge{{[]string{long}, []string{long}, []string{long}}}, 5000), "writ learn --config FILE", 13}, nil
	}
	cookie, _, _ := r.in()
	for path, says := range map[string][]string{
		"/tools?tool=a/b&learned": {"4990 more are not shown", "writ learn --config FILE", "13 calls of it in the last 7 days were made under another definition"},
		"/tools":                  {"1 accepted, 1 asked, 2 refused, 1 unknown", "provenance.unseen", "4800 more are not shown", "5000 more are not shown", "4980 more: <code>writ check --live"},
		"/tools?name=T0003":       {"b/t0003"},
		"/tools?state=refused":    {"None of that kind."},
		"/tools?tool=a/b":         {"Shown is the beginning.", "4800 more lines", "and 4980 more", `href="/?tool=a%2fb&amp;status=refused">2 refused`},
	} {
		w := r.ask("GET", path, cookie, nil)
		if w.Code != 200 || w.Body.Len() > 24*maxDrawn {
			t.Errorf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
		for _, s := range says {
			if !strings.Contains(w.Body.String(), s) {
				t.Errorf("%s does not say %q", path, s)
			}
		}
	}
}

// TestLongPolicy: a policy is shown in parts, every line of it on one, with what was found
// beside it; how long a part is the policy does not choose.
func TestLongPolicy(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("\u202e", 1<<18)
	p := Policy{Source: []byte(strings.Repeat("a line\n", 2499) + "the last\n")}
	for i := range 5000 {
		p.Findings = append(p.Findings, Finding{2500 - i%2500, "a doubt"})
		p.Kept = append(p.Kept, Kept{Words: "something", By: "kim"})
	}
	r.o.Policy = func(context.Context) (*Policy, error) { return &p, nil }
	cookie, _, _ := r.in()
	seen, path := 0, "/policy"
	for path != "" {
		w := r.ask("GET", path, cookie, nil)
		body := w.Body.String()
		if w.Code != 200 || len(body) > 4*maxDrawn || strings.Count(body, `<li id="L`) > maxPolicyLines || !strings.Contains(body, "4800 more: <code>writ grown list") || !strings.Contains(body, "4800 more stand beside") {
			t.Fatalf("%s: %d, %d bytes", path, w.Code, len(body))
		}
		seen += strings.Count(body, `<li id="L`)
		if strings.Count(body, `class="found"`) != 2*strings.Count(body, `<li id="L`) {
			t.Errorf("%s: %d findings stand beside lines", path, strings.Count(body, `class="found"`))
		}
		_, after, _ := strings.Cut(body, `aria-label="More of the policy">`)
		path = ""
		if rest, ok := strings.CutPrefix(after, `<a href="`); ok {
			path, _, _ = strings.Cut(rest, `"`)
		}
	}
	if w := r.ask("GET", "/policy?at=2400", cookie, nil); !strings.Contains(w.Body.String(), `<li id="L2400"`) || strings.Contains(w.Body.String(), `<li id="L2389"`) {
		t.Error("a line is not shown where it is pointed at")
	}
	if seen != 2500 {
		t.Errorf("%d of 2500 lines were shown", seen)
	}
	p = Policy{Source: []byte(strings.Repeat(long+"\n", 20)), Findings: []Finding{{1, long}}, Kept: []Kept{{Words: long, By: long, At: long}}}
	if w := r.ask("GET", "/policy", cookie, nil); w.Code != 200 || w.Body.Len() > 16*maxDrawn {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
}

// TestManyBeliefs: a page of a memory looks at no more records for a longer one, nobody else
// waits for all of that, and each claim stands on one page.
func TestManyBeliefs(t *testing.T) {
	const n = 100_000
	r := newRig(t)
	r.words = "words"
	k := &kept{words: &r.words, records: n}
	r.o.Memory = k
	cookie, _, _ := r.in()
	seen := map[string]bool{}
	pages := 0
	for path := "/memory?word=contested"; path != ""; pages++ {
		k.looked = 0
		body := r.ask("GET", path, cookie, nil).Body.String()
		if k.looked > maxMade || k.widest > perMade {
			t.Fatalf("%s looks at %d records, %d at once", path, k.looked, k.widest)
		}
		rest := body
		for {
			_, after, ok := strings.Cut(rest, `<td class="call"><a href="/memory/main/`)
			if !ok {
				break
			}
			var id string
			if id, rest, _ = strings.Cut(after, `"`); seen[id] {
				t.Errorf("%s stands on two pages", id)
			}
			seen[id] = true
		}
		_, after, _ := strings.Cut(body, `aria-label="More of the list"><a href="`)
		if path, _, _ = strings.Cut(after, `"`); path == "" {
			break
		}
		path = strings.ReplaceAll(path, "&amp;", "&")
	}
	if want := (n-1)/997 + 1; len(seen) != want || pages > n/maxMade+1 {
		t.Errorf("%d of %d on %d pages", len(seen), want, pages)
	}
	long := strings.Repeat("\u202e", 1<<20)
	if body := r.ask("GET", "/memory", cookie, nil).Body.String(); !strings.Contains(body, "<h1>Memory</h1>\n\n<p>What agents kept") {
		t.Error("it does not begin by saying what it shows")
	}
	r.words = long
	for _, path := range []string{"/memory", "/memory?q=x", "/memory/main/prop_1"} {
		if w := r.ask("GET", path, cookie, nil); w.Code != 200 || w.Body.Len() > 16*maxDrawn {
			t.Errorf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
}

// TestCharts: a picture shows what the figures below it say, of whatever times; how many rows it
// has is not what a log chooses.
func TestCharts(t *testing.T) {
	r := newRig(t)
	page := func(path string) string {
		cookie, _, _ := r.in()
		return r.ask("GET", path, cookie, nil).Body.String()
	}
	if body := page("/charts"); !strings.Contains(body, "No decision of that kind.") || strings.Contains(body, "<svg") || strings.Contains(body, "All of them did.") {
		t.Errorf("of an empty log: %s", body)
	}
	yes := decided(gate.Record{Server: "a", Tool: "b", Status: writ.Accepted, Allowed: true}, `{}`)
	no := decided(gate.Record{Server: "a", Tool: "b", Status: writ.Rejected, Code: writ.MissingProvenance, Reason: writ.ProvenanceUnseen}, `{}`)
	asked := decided(gate.Record{Server: "a", Tool: "c", Status: writ.Rejected, Code: writ.PolicyViolation, Reason: writ.ApprovalPending}, `{}`)
	r.write(one, open, record{"turn", map[string]any{"evidence": 1}, map[string]string{"turn": "x"}}, yes, yes, yes, returned(5, 2, "ok", `{}`))
	r.later(90 * time.Minute)
	r.write(one, no, asked, asked)
	if body := page("/charts?status=accepted"); !strings.Contains(body, "All of them did.") {
		t.Errorf("of those that passed:\n%s", body)
	}
	body := page("/charts")
	for _, want := range []string{
		`aria-label="3 accepted, 2 asked, 1 refused, 5 min a column; the figures stand below"`, `<rect class="accepted" x="0" y="0" width="50" height="160"/>`,
		`<td>3</td><td>0</td><td>0</td><td>0</td>`, `<td>0</td><td>2</td><td>1</td><td>0</td>`, "2 asked</td>", "1 refused</td>", "2: 1 returned, 1 typed", `href="/tools?tool=a%2fc"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("it does not say %q:\n%s", want, body)
		}
	}
	if body := page("/charts?reason=provenance"); !strings.Contains(body, `aria-label="1 refused, 1 min a column`) {
		t.Errorf("by reason:\n%s", body)
	}
	// One of them lies far back, and every call is of another tool, reason and session.
	r.later(-50 * 365 * 24 * time.Hour)
	var many []record
	for i := range 300 {
		d := decided(gate.Record{Server: "a", Tool: fmt.Sprint("t", i), Status: writ.Rejected, Code: writ.PolicyViolation, Reason: writ.Reason(fmt.Sprint("r", i))}, `{}`)
		many = append(many, d)
	}
	r.write("s_bbbbbbbbbbbbbbbb", append([]record{open}, many...)...)
	body = page("/charts")
	if n := strings.Count(body, "<rect"); n > maxSpans*4+4*maxRanked*4 || strings.Count(body, "<tr>") > maxSpans+3*maxRanked+4 || !strings.Contains(body, "rows with fewer are not shown") {
		t.Errorf("%d rectangles, %d rows", n, strings.Count(body, "<tr>"))
	}
}
