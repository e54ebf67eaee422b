package approval

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// TestQueue: one question for one call, one answer for one question, and nothing
// but a recorded answer ends it.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(time.Now)
		of := Question{Session: "s_a", Server: "mail", Tool: "send"}
		recorded := 0
		record := func(Answer, *Offer) error { recorded++; return nil }
		ctx := t.Context()

		// Nobody answers: it stands open, and ends.
		if _, got, err := q.Ask(ctx, of, "act-1", Waits, Effects{Settle: record}, nil); got != gate.Pending || err != nil {
			t.Fatal(got, err)
		}
		open, _ := q.Open()
		if len(open) != 1 || open[0].ID == "" {
			t.Fatalf("%+v", open)
		}
		first := open[0].ID

		// The same call again waits for the same answer; another has its own.
		type end struct {
			asked gate.Asked
			err   error
		}
		ends := make(chan end, 2)
		for range 2 {
			go func() {
				_, a, err := q.Ask(ctx, of, "act-1", Waits, Effects{Settle: record}, nil)
				ends <- end{a, err}
			}()
		}
		synctest.Wait()
		if open, _ = q.Open(); len(open) != 1 || open[0].ID != first {
			t.Fatalf("%+v", open)
		}
		if _, err := q.Answer("nothing", Answer{Yes: true}); !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
		if _, err := q.Answer(first, Answer{Yes: true, By: "kim", Label: writ.User}); err != nil || recorded != 1 {
			t.Fatal(err, recorded)
		}
		for range 2 {
			if e := <-ends; e.asked != gate.NotAsked || e.err != nil {
				t.Fatal(e)
			}
		}
		// A call that was judged before the yes is judged by it too; one that was judged since
		// has a question of its own.
		if _, got, err := q.Ask(ctx, of, "act-1", Waits, Effects{Settle: record}, nil); got != gate.NotAsked || err != nil {
			t.Fatal(got, err)
		}
		since := of
		since.Since = q.Now()
		if _, got, err := q.Ask(ctx, since, "act-1", Waits, Effects{Settle: record}, nil); got != gate.Pending || err != nil {
			t.Fatal(got, err)
		}
		since.Since = q.Now()
		q.Passed(since)
		// Who comes second is told who was first.
		if _, err := q.Answer(first, Answer{}); !errors.Is(err, ErrAnswered) {
			t.Fatal(err)
		}
		if a, ok := q.Said(first); !ok || !a.Yes || a.By != "kim" {
			t.Fatal(a, ok)
		}

		// An answer that is not on record is none.
		broken := errors.New("disk")
		go func() {
			_, a, err := q.Ask(ctx, of, "act-2", Waits, Effects{Settle: func(Answer, *Offer) error { return broken }}, nil)
			ends <- end{a, err}
		}()
		synctest.Wait()
		open, _ = q.Open()
		if _, err := q.Answer(open[0].ID, Answer{Yes: true}); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if e := <-ends; !errors.Is(e.err, broken) {
			t.Fatal(e)
		}

		// A question ends; who waits for it is told so.
		go func() {
			time.Sleep(Stands - time.Second)
			_, a, err := q.Ask(ctx, of, "act-3", Waits, Effects{Settle: record}, nil)
			ends <- end{a, err}
		}()
		if _, got, _ := q.Ask(ctx, of, "act-3", 0, Effects{Settle: record}, nil); got != gate.Pending {
			t.Fatal(got)
		}
		if e := <-ends; e.asked != gate.Expired {
			t.Fatal(e)
		}

		// A session has so many, and no more.
		for i := range maxSession + 1 {
			of.Arguments = []byte{'a' + byte(i)}
			_, got, _ := q.Ask(ctx, of, string(of.Arguments), 0, Effects{Settle: record}, nil)
			if want := gate.Pending; i == maxSession {
				if got != gate.NotAsked {
					t.Fatal(i, got)
				}
			} else if got != want {
				t.Fatal(i, got)
			}
		}
		// Another reason is another question of the same call, and the old one ends: who
		// waits for it has the call judged again. So does a call that passed.
		other := Question{Session: "s_c", Server: "mail", Tool: "send", Arguments: []byte("{}")}
		for i, supersede := range []func(){
			func() { q.Ask(ctx, other, "call-b", 0, Effects{Settle: record}, nil) },
			func() {
				q.Passed(other) // judged before the question was put
				synctest.Wait()
				if open, _ := q.Open(); open[len(open)-1].Tool != "send" || open[len(open)-1].Session != "s_c" {
					t.Errorf("%+v", open)
				}
				other.Since = q.Now()
				q.Passed(other)
			},
		} {
			go func() {
				_, a, err := q.Ask(ctx, other, "call-"+string(rune('a'+i)), Waits, Effects{Settle: record}, nil)
				ends <- end{a, err}
			}()
			synctest.Wait()
			open, _ = q.Open()
			old := open[len(open)-1].ID
			supersede()
			if e := <-ends; e.asked != gate.NotAsked || e.err != nil {
				t.Fatal(e)
			}
			if _, err := q.Answer(old, Answer{Yes: true}); !errors.Is(err, ErrUnknown) {
				t.Fatal(err)
			}
		}
		if open, _ = q.Open(); len(open) != maxSession {
			t.Fatalf("%d are open", len(open))
		}
		// A client that goes away leaves its question open.
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, got, _ := q.Ask(gone, Question{Session: "s_b"}, "x", Waits, Effects{Settle: record}, nil); got != gate.Pending {
			t.Fatal(got)
		}
		if q.Watched() {
			t.Fatal("nobody watches")
		}
		leave := q.There()
		if leave2 := q.There(); !q.Watched() {
			t.Fatal("somebody watches")
		} else {
			leave2()
			leave2()
		}
		if !q.Watched() {
			t.Fatal("one of two still watches")
		}
		if leave(); q.Watched() {
			t.Fatal("all have left")
		}
	})
}

// TestBecause: a person is told in words whatever he may be asked about.
func TestBecause(t *testing.T) {
	b, err := os.ReadFile("../../reasons.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range regexp.MustCompile(`Reason = "([a-z_.]+)"`).FindAllSubmatch(b, -1) {
		r := writ.Reason(m[1])
		if n++; writ.Askable(r) != (because[r] != "") {
			t.Errorf("%s: askable %v, and it says %q", r, writ.Askable(r), because[r])
		}
	}
	if n < 100 {
		t.Errorf("%d reasons", n)
	}
}

// TestKeep: what was offered is kept with a yes, before the call goes on, and nothing
// else is. What cannot be kept leaves the yes.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := errors.New("disk")
		for _, c := range []struct {
			name    string
			said    Answer
			settles error
			err     error
			open    bool // the question stands open
			kept    bool
			waits   error // what who waits gets
		}{
			{"kept", Answer{Yes: true, Keep: KeepSource}, nil, nil, false, true, nil},
			{"this once", Answer{Yes: true}, nil, nil, false, false, nil},
			{"no", Answer{}, nil, nil, false, false, nil},
			{"another", Answer{Yes: true, Keep: KeepValue}, nil, ErrNotOffered, true, false, nil},
			{"with a no", Answer{Keep: KeepSource}, nil, ErrNotOffered, true, false, nil},
			{"not kept", Answer{Yes: true, Keep: KeepSource}, &NotKeptError{disk}, disk, false, false, nil},
			{"not on record", Answer{Yes: true, Keep: KeepSource}, disk, disk, false, false, disk},
		} {
			q := New(time.Now)
			asked, settled := 0, 0
			slow := make(chan struct{})
			does := Effects{
				Offers: func() []Offer {
					asked++
					return []Offer{{Keep: KeepSource, Lines: []policy.Grown{{Tool: "mail/send", Arg: "/to", From: "mail/list#/ids/*"}}}}
				},
				Settle: func(a Answer, keep *Offer) error {
					settled++
					if a != c.said || (keep != nil) != (a.Keep != "") {
						t.Errorf("%s: settles %+v %v", c.name, a, keep)
					}
					<-slow
					return c.settles
				},
			}
			type end struct {
				kept  []policy.Grown
				asked gate.Asked
				err   error
			}
			ends := make(chan end, 2)
			for range 2 { // the second joins the first
				go func() {
					kept, asked, err := q.Ask(t.Context(), Question{Session: "s_a"}, "act", time.Second, does, nil)
					ends <- end{kept, asked, err}
				}()
				synctest.Wait()
			}
			open, _ := q.Open()
			go func() {
				if kept, err := q.Answer(open[0].ID, c.said); !errors.Is(err, c.err) || (kept != nil) != c.kept {
					t.Errorf("%s: %v %v", c.name, kept, err)
				}
			}()
			synctest.Wait()
			time.Sleep(time.Minute) // longer than the call is held: it waits for what it was said
			close(slow)
			synctest.Wait()
			for range 2 {
				want := gate.NotAsked
				if c.open {
					want = gate.Pending
				} else if !c.said.Yes {
					want = gate.Denied
				}
				if e := <-ends; (e.kept != nil) != c.kept || e.asked != want || e.err != c.waits {
					t.Errorf("%s: %+v", c.name, e)
				}
			}
			if left, _ := q.Open(); (len(left) == 1) != c.open || asked != 1 || settled > 1 || (settled == 0) != c.open {
				t.Errorf("%s: %d open, offered %d times, settled %d times", c.name, len(left), asked, settled)
			}
		}
	})
}

// TestHandlerKeeps: an answer over HTTP is an object of exactly these words, by who may
// answer, and is told what became of it.
func TestHandlerKeeps(t *testing.T) {
	q := New(time.Now)
	settled := 0
	does := Effects{
		Offers: func() []Offer {
			return []Offer{{Keep: KeepValue, Lines: []policy.Grown{{Tool: "mail/send", Arg: "/to", Const: []byte(`"<a>"`)}}}}
		},
		Settle: func(a Answer, _ *Offer) error {
			if settled++; settled == 2 {
				return &NotKeptError{errors.New("the disk is full")}
			}
			if a.By != "kim" || a.Label != writ.User {
				t.Errorf("by %+v", a)
			}
			return nil
		},
	}
	for _, act := range []string{"act-1", "act-2"} {
		if _, _, err := q.Ask(t.Context(), Question{Session: "s_a", Tool: act}, act, 0, does, nil); err != nil {
			t.Fatal(err)
		}
	}
	open, _ := q.Open()
	may := errors.New("not you")
	h := Handler(q, func(*http.Request) (string, writ.Label, error) { return "kim", writ.User, may })
	for _, c := range []struct {
		n      int
		body   string
		status int
		says   string
	}{
		{0, `{"yes":true,"keep":"value"}`, 403, "not you"},
		{0, `{"yes":true,"keep":"source"}`, 409, "not offered"},
		{0, `{"yes":false,"keep":"value"}`, 409, "not offered"},
		{0, `{"yes":true,"keep":"value","who":"own"}`, 400, ""},
		{0, `{"yes":true,"keep":1}`, 400, ""},
		{0, `{"yes":true,"keep":""}`, 400, ""},
		{0, `{"yes":true,"who":"own"}`, 400, ""},
		{0, `{"keep":"value"}`, 400, ""},
		{0, `{"yes":"true"}`, 400, ""},
		{0, `{"yes":true,"yes":true}`, 400, ""},
		{0, `{}`, 400, ""},
		{0, `["value"]`, 400, ""},
		{0, `{"keep":"value","yes":true}`, 200, `"lines":[{"tool":"mail/send","arg":"/to","const":`},
		{0, `{"yes":true,"keep":"value"}`, 409, `"by":"kim"`},
		{1, `{"yes":true,"keep":"value"}`, 200, `{"yes":true,"by":"kim","error":"nothing was kept: the disk is full","told":true}`},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/approvals/"+open[c.n].ID, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s", c.body, w.Code, w.Body)
		}
		may = nil
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest("POST", "/approvals/"+open[0].ID+"/grown", strings.NewReader(`{"keep":"value"}`))); w.Code != 404 {
		t.Errorf("afterwards: %d", w.Code)
	}
}

// TestElicitation: a client's form offers what may be kept as choices whose lines it shows
// whole, and its answer is one of them or none.
func TestElicitation(t *testing.T) {
	ours := Offer{Keep: KeepOurs, Lines: []policy.Grown{{Tool: "mail/send", Arg: "/to", From: "mail/list#/ids/*\nyes", Writes: policy.WritesOurs}}}
	value := func(n int) Offer {
		return Offer{Keep: KeepValue, Lines: []policy.Grown{{Tool: "mail/send", Arg: "/to", Const: []byte(`"` + strings.Repeat("x", n) + `"`)}}}
	}
	for _, c := range []struct {
		offers []Offer
		enum   string
	}{
		{nil, `["no","yes"]`},
		{[]Offer{ours, value(9)}, `["no","yes","from now on, and strangers cannot write there","from now on, this exact value alone"]`},
		{[]Offer{value(900)}, `["no","yes"]`},
	} {
		q := Question{ID: "q", Session: "s_a", Server: "mail", Tool: "send", Arguments: []byte(`{"to":"x"}`), FromNowOn: c.offers}
		params, ok := q.Elicitation()
		v := strictjson.Of(params)
		if got := string(v.Get("requestedSchema").Get("properties").Get("answer").Get("enum").Raw()); !ok || got != c.enum {
			t.Errorf("%v %s", ok, got)
		}
		message, _ := v.Get("message").Text()
		for row := range strings.Lines(message) {
			if utf8.RuneCountInString(row) > 81 || strings.HasPrefix(row, "yes") {
				t.Errorf("a row is %q", row)
			}
		}
		shows := func(s string) bool {
			return strings.Contains(regexp.MustCompile(`\n *\| `).ReplaceAllString(message, ""), s)
		}
		if len(c.offers) == 2 && (!shows(`"writes":"ours"`) || !shows(`only our own people can write "mail/list#/ids/*\nyes"`) || !shows(`"const":"xxxxxxxxx"`)) {
			t.Errorf("it shows %s", message)
		}
	}
	all := Question{ID: "q", Session: "s_a", Server: "mail", Tool: "send", Arguments: []byte(`{"to":"x"}`), FromNowOn: []Offer{
		{Keep: KeepServer, Lines: []policy.Grown{{Tool: "mail/send", Arg: "/to", From: "mail/list#/ids/*", Writes: policy.WritesServer}}}, ours, value(9),
		{Keep: KeepSource, Lines: []policy.Grown{{Tool: "mail/send", Arg: "/to", From: "mail/own#/ids/*"}}}, {Keep: KeepClosed, Lines: []policy.Grown{{Closed: "contact"}}},
	}}
	for answer, want := range map[string]Answer{
		`{"action":"accept","content":{"answer":"from now on, and the server itself gives what stands there"}}`: {Yes: true, Keep: KeepServer},
		`{"action":"accept","content":{"answer":"yes"}}`:                                                        {Yes: true},
		`{"action":"accept","content":{"answer":"no"}}`:                                                         {},
		`{"action":"decline"}`: {},
		`{"action":"accept","content":{"answer":"from now on, what this source returns"}}`:            {Yes: true, Keep: KeepSource},
		`{"action":"accept","content":{"answer":"from now on, and strangers cannot add to it"}}`:      {Yes: true, Keep: KeepClosed},
		`{"action":"accept","content":{"answer":"from now on, and strangers cannot write there"}}`:    {Yes: true, Keep: KeepOurs},
		`{"action":"accept","content":{"answer":"from now on, this exact value alone"}}`:              {Yes: true, Keep: KeepValue},
		`{"action":"cancel","content":{"answer":"yes"}}`:                                              {By: "none"},
		`{"action":"accept","content":{"answer":"ours"}}`:                                             {By: "none"},
		`{"action":"accept","content":{"answer":""}}`:                                                 {By: "none"},
		`{"action":"accept","content":{}}`:                                                            {By: "none"},
		`{"action":"accept","content":{"answer":"from now on, this exact value alone","more":"yes"}}`: {By: "none"},
	} {
		if got, said := all.Elicited(strictjson.Of([]byte(answer))); said != (want.By == "") || said && got != want {
			t.Errorf("%s: %+v %v", answer, got, said)
		}
	}
	// What the form left out, for its length or because it was not offered, is no answer.
	short := Question{ID: "q", Session: "s_a", Server: "mail", Tool: "send", Arguments: []byte(`{"to":"x"}`), FromNowOn: []Offer{ours, value(900)}}
	for word, shown := range map[string]bool{choices[KeepOurs]: true, choices[KeepValue]: false, thisCall: false, choices[KeepSource]: false} {
		got, said := short.Elicited(strictjson.Of([]byte(`{"action":"accept","content":{"answer":"` + word + `"}}`)))
		if said != shown || said && got != (Answer{Yes: true, Keep: KeepOurs}) {
			t.Errorf("%s: %+v %v", word, got, said)
		}
	}
}

// TestHeld: a question says how long a call is held for it, and who answers when none is any
// more is told that.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(time.Now)
		does := Effects{Settle: func(Answer, *Offer) error { return nil }}
		for i, c := range []struct {
			waits []time.Duration // of each time that the call is made
			held  time.Duration   // from then on, 0 for not at all
			after time.Duration   // the answer comes
			says  string
		}{
			{[]time.Duration{Waits}, Waits, time.Second, ""},
			{[]time.Duration{Waits}, 0, Waits + time.Second, "No call was held for it any more: the agent was told that nobody had answered. Made again within ten minutes, it is refused."},
			{[]time.Duration{0}, 0, time.Second, "No call was held for it any more: the agent was told that nobody had answered. Made again within ten minutes, it is refused."},
			{[]time.Duration{0, Waits}, Waits, time.Second, ""},
			{[]time.Duration{Waits, 2 * Stands}, Stands, Waits + time.Second, ""},
		} {
			asked := time.Now()
			of := Question{Session: "s_a", Server: "s", Tool: "t", Arguments: []byte{byte(i)}}
			for _, wait := range c.waits {
				go q.Ask(t.Context(), of, string(rune(i)), wait, does, nil)
				synctest.Wait()
			}
			time.Sleep(c.after)
			synctest.Wait()
			open, _ := q.Open()
			if got := open[0].Held; c.held == 0 && !got.IsZero() || c.held > 0 && !got.Equal(asked.Add(c.held)) {
				t.Errorf("%v: held until %v", c, got)
			}
			if status, said := q.Reply(open[0].ID, Answer{}); status != http.StatusOK || said.Late() != c.says {
				t.Errorf("%v: %d %q", c, status, said.Late())
			}
		}
		for _, r := range []Reply{{Told: true, Yes: true}, {Told: true, Yes: true, Lines: make([]policy.Grown, 1)}} {
			if got := r.Late(); !strings.HasSuffix(got, "it passes.") || strings.Contains(got, "within ten minutes") != (r.Lines == nil) {
				t.Error(got)
			}
		}
	})
}

// TestSecondsLeft: a question says how long it can still be answered.
func TestSecondsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Question{ID: "q", Session: "s_a", Server: "s", Tool: "edit", Arguments: []byte(`{}`), Until: time.Now().Add(Stands), Held: time.Now().Add(Waits)}
		at := func(t time.Time, left string) string {
			return "until " + t.Local().Format(time.TimeOnly) + ", " + left + " s from now"
		}
		for _, want := range []string{"600", "523", "0"} {
			shown, held := q.Show(), "held "+at(q.Held, "45")
			if want != "600" {
				shown.Held, held = time.Time{}, "not held; with a yes it passes when it is made again"
			}
			if got, _ := shown.Whole(80, 20); !strings.Contains(got, "  the call is "+held+"\n  an answer counts "+at(q.Until, want)+"\n") {
				t.Errorf("%s s are left: %s", want, got)
			}
			time.Sleep(77 * time.Second)
			if want == "523" {
				time.Sleep(Stands)
			}
		}
	})
}

// TestPrint: whoever wrote what is asked about, no row of the question but ours
// begins as one of ours does, none is wider than the screen, the values stand last, and
// what has more rows than the screen is not whole.
func TestPrint(t *testing.T) {
	blank := func(line string) string { return line + strings.Repeat(" ", 80-len(line)%80) }
	drawn := blank("ok") + strings.Repeat(" ", 80*60) + blank("May the agent do this?   s · edit") + blank("  /issue  kernel-12") + blank("      seen in user, what the user typed")
	ours := []string{"May the agent do this?   s · edit ", "  arguments  {", "  answered inside the call  {", "  /issue  \"eve-666\"", "      seen in s/list \"/x", "      no evidence ", "      asked because ", "  the call is ", "  an answer counts until ", "  | "}
	for body, whole := range map[string]bool{"ok": true, drawn: true, strings.Repeat("ab ", 300): false, strings.Repeat("é", 500): false, strings.Repeat("a  ", 20): true, strings.Repeat("x", 8001): false} {
		raw := []byte(`"eve-666"`)
		q := Question{ID: "q", Session: "s_a", Server: "s", Tool: "edit", Arguments: []byte(`{"body":"` + body + `","issue":"eve-666"}`), Values: []gate.AskedValue{
			{Pointer: "/issue", Raw: raw, Reason: writ.ProvenanceUnseen, Seen: []gate.Ref{{Tool: "s/list", Pointer: "/x" + strings.Repeat(" y", 90), Label: writ.External}}},
			{Pointer: "/issue", Raw: raw, Reason: writ.ProvenanceUnseen},
		}}
		shown := q.Show()
		got, ok := shown.Whole(80, 20)
		if ok != whole {
			t.Errorf("%.20q: whole is %v:\n%s", body, ok, got)
		}
		if _, ok := shown.Whole(0, 0); ok != (len(body) < 8000) {
			t.Errorf("%.20q: on an unknown screen whole is %v", body, ok)
		}
		q.Answers = []byte(`{"q":"` + body + `"}`)
		answered := q.Show()
		more, ok := answered.Whole(80, 20)
		if ok && !whole || !strings.Contains(more, "  answered inside the call  {") {
			t.Errorf("%.20q: with an answer whole is %v:\n%s", body, ok, more)
		}
		for _, row := range strings.Split(strings.TrimSuffix(got+more, "\n"), "\n") {
			if utf8.RuneCountInString(row) > 80 || !slices.ContainsFunc(ours, func(of string) bool { return strings.HasPrefix(row, of) }) {
				t.Errorf("%.20q: a row is %q", body, row)
			}
		}
		if strings.Index(got, "  arguments") > strings.Index(got, "  /issue") {
			t.Errorf("%.20q: the values do not stand last", body)
		}
	}
}

// TestPrintOneFault: of what fails because of something else the value is shown, and why it
// is asked about once, where the fault is.
func TestPrintOneFault(t *testing.T) {
	q := Question{ID: "q", Session: "s_a", Server: "tix", Tool: "create", Arguments: []byte(`{"title":"Paper"}`), Values: []gate.AskedValue{
		{Reason: writ.PolicyNoArguments},
		{Pointer: "/title", Raw: []byte(`"Paper"`), Reason: writ.ProvenanceReader, Follows: true},
	}}
	shown := q.Show()
	got, _ := shown.Whole(80, 20)
	for _, want := range []string{"  the call as a whole\n      asked because nothing in the call says what it acts on\n", "  /title  \"Paper\"\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not shown:\n%s", want, got)
		}
	}
	if strings.Count(got, "asked because") != 1 {
		t.Errorf("more than one reason:\n%s", got)
	}
}

// TestShownAnew: the same call made again, of which more was seen since, has what was seen
// and what may be kept in its question, under another id, and who waits goes on waiting.
func TestShownAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(time.Now)
		asked := 0
		does := Effects{
			Settle: func(Answer, *Offer) error { return nil },
			Offers: func() []Offer {
				asked++
				if asked == 1 {
					return nil
				}
				return []Offer{{Keep: KeepServer, Lines: []policy.Grown{{Tool: "tix/comment", Arg: "/id", From: "tix/list#/*/id"}}}}
			},
		}
		of := Question{Session: "s_a", Server: "tix", Tool: "comment", Values: []gate.AskedValue{{Pointer: "/id", Reason: writ.ProvenanceUnseen}}}
		ended := make(chan error, 1)
		go func() {
			_, _, err := q.Ask(t.Context(), of, "act", Waits, does, nil)
			ended <- err
		}()
		synctest.Wait()
		open, _ := q.Open()
		first := open[0].ID
		// nothing was seen since: it is the same question, and nothing is tried again
		q.Ask(t.Context(), of, "act", 0, does, nil)
		if open, _ = q.Open(); len(open) != 1 || open[0].ID != first || asked != 1 {
			t.Fatal(open, asked)
		}
		listed := of
		listed.Values = []gate.AskedValue{{Pointer: "/id", Reason: writ.ProvenanceUnseen, Seen: []gate.Ref{{Evidence: 1, Tool: "tix/list", Pointer: "/content/0/text", Inner: "/0/id", Label: writ.External}}}}
		if _, got, err := q.Ask(t.Context(), listed, "act", 0, does, nil); got != gate.Pending || err != nil {
			t.Fatal(got, err)
		}
		open, _ = q.Open()
		if len(open) != 1 || open[0].ID == first || len(open[0].Values[0].Seen) != 1 || len(open[0].FromNowOn) != 1 {
			t.Fatalf("%+v", open)
		}
		// Who was judged before more was seen, and comes late, takes nothing back.
		shown := open[0].ID
		q.Ask(t.Context(), of, "act", 0, does, nil)
		if open, _ = q.Open(); open[0].ID != shown || asked != 2 {
			t.Error(open, asked)
		}
		if _, err := q.Answer(first, Answer{Yes: true}); !errors.Is(err, ErrUnknown) {
			t.Error("an answer to what was shown before counts", err)
		}
		if _, err := q.Answer(open[0].ID, Answer{Yes: true, Keep: KeepServer}); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		// It is shown anew so often, and no more.
		for i := range maxAnew + 3 {
			listed.Values = slices.Clone(listed.Values)
			listed.Values[0].Seen = append(slices.Clip(listed.Values[0].Seen), gate.Ref{Evidence: uint32(10 + i)})
			q.Ask(t.Context(), listed, "other", 0, does, nil)
		}
		if asked != 2+1+maxAnew {
			t.Errorf("offers were tried %d times", asked)
		}
	})
}
