package gate_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/certificate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// The behaviour of Decide and Observe stands in testdata/decide/*.txtar; see
// README.md there for the words of a case.

func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/decide/*.txtar")
	if err != nil || len(files) < 50 {
		t.Errorf("%d case files, want at least 50 (%v)", len(files), err)
	}
	// The contracts that ship have theirs beside them.
	shipped, err := filepath.Glob("../contracts/*/cases.txtar")
	if files = append(files, shipped...); err != nil || len(shipped) == 0 {
		t.Errorf("the contracts that ship have no cases (%v)", err)
	}
	total, ran := 0, 0
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".txtar")
		if name == "cases" && strings.HasPrefix(f, "..") {
			name = filepath.Base(filepath.Dir(f))
		}
		t.Run(name, func(t *testing.T) {
			r := newRun(t, f)
			r.steps()
			total += r.checks
			ran++
		})
	}
	if ran == len(files) && total < 120 {
		t.Errorf("%d checked steps, want at least 120", total)
	}
	if t.Logf("%d certificates hold, %d alterations do not", certificates, alterations); ran == len(files) && certificates < 300 {
		t.Errorf("%d certificates, want at least 300", certificates)
	}
}

type run struct {
	asked     gate.Asked
	ask       *gate.Ask // of the last call that asked
	passed    time.Duration
	t         *testing.T
	written   string // the policy without the lines of keep
	tools     string
	kept      []string // those lines
	policy    *policy.Policy
	catalogue *gate.Catalogue
	script    string
	line      int
	what      string
	checks    int

	sessions   map[string]*gate.Session
	records    map[*gate.Session]*records
	session    *gate.Session
	places     *provenance.Places // of the state the case's sessions share
	lowered    uint64             // the newest number there
	placed     uint64             // what the last call lowered there
	says       string             // what the last call lowers
	shadow     bool
	own        []string
	resolved   map[string][]string
	unresolved []string
	elsewhere  bool
	programs   []string
	bases      []string
	answers    []byte
	look       bool

	read    *gate.Reading // of the last call
	last    *gate.Decision
	held    map[string]*gate.Decision
	turns   map[uint32]string
	outcome []byte // of the last decision
	before  []byte // of the one before
	obs     *gate.Observation
	pending bool // a call or a result nobody has judged yet
}

func newRun(t *testing.T, file string) *run {
	t.Helper()
	parts := map[string]string{}
	load := func(file string) {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range ar.Files {
			if _, ok := parts[f.Name]; !ok {
				parts[f.Name] = string(f.Data)
			}
		}
	}
	load(file)
	if strings.HasPrefix(file, "..") {
		parts["policy.yaml"], parts["tools.json"] = shippedWorld(t, filepath.Dir(file))
	}
	world := strings.TrimSpace(parts["world"])
	if world == "" {
		world = "office"
	}
	load("testdata/decide/worlds/" + world + ".txtar")
	p, c := newWorld(t, parts["policy.yaml"], parts["tools.json"])
	r := &run{t: t, written: parts["policy.yaml"], tools: parts["tools.json"], policy: p, catalogue: c, script: parts["steps"], sessions: map[string]*gate.Session{}, records: map[*gate.Session]*records{}, places: provenance.NewPlaces(), held: map[string]*gate.Decision{}, resolved: map[string][]string{}}
	if r.script == "" {
		t.Fatal("no steps")
	}
	r.enter("s_a")
	return r
}

// shippedWorld is a contract of contracts/ with its definitions, and with those that it accepts
// something of beside it, each under its own name.
func shippedWorld(t testing.TB, dir string) (policy, tools string) {
	t.Helper()
	policy, defs := shippedAlone(t, dir, "self")
	all := map[string]any{"self": defs}
	policy = beside.ReplaceAllStringFunc(policy, func(s string) string {
		m := beside.FindStringSubmatch(s)
		return m[1] + ", output: " + m[3] + m[2] + " # beside\n"
	})
	for _, m := range besideOf.FindAllStringSubmatch(policy, -1) {
		if all[m[1]] == nil {
			other, defs := shippedAlone(t, filepath.Join(filepath.Dir(dir), m[1]), m[1])
			collections, rest, _ := strings.Cut(other[strings.Index(other, "collections:\n")+len("collections:\n"):], "\ntools:\n")
			policy = strings.Replace(policy, "collections:\n", "collections:\n"+collections, 1) + rest
			all[m[1]] = defs
		}
	}
	list, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return policy, string(list)
}

var (
	beside   = regexp.MustCompile(`(from: \[[^\]]*)(\].*?) # beside: (\S+)\n`)
	besideOf = regexp.MustCompile(`, output: ([a-z0-9-]+)/.* # beside\n`)
)

// shippedAlone is one of them under a name. Definitions are kept without their sentences, so it
// is pinned to what they are then.
func shippedAlone(t testing.TB, dir, server string) (policy string, definitions []json.RawMessage) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "contract.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "tools.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Tools []struct {
			Pin        string
			Definition json.RawMessage
		}
	}
	if err := json.Unmarshal(b, &kept); err != nil {
		t.Fatal(err)
	}
	policy = regexp.MustCompile(`\bself([/.])`).ReplaceAllString(string(text), server+"$1")
	for _, k := range kept.Tools {
		policy = strings.ReplaceAll(policy, k.Pin, gate.PinOf(server, k.Definition))
		definitions = append(definitions, k.Definition)
	}
	return policy, definitions
}

func newWorld(t testing.TB, text, tools string) (*policy.Policy, *gate.Catalogue) {
	t.Helper()
	p, faults := policy.Parse("policy.yaml", []byte(text))
	for _, f := range faults {
		t.Errorf("policy.yaml:%d:%d: %s (%s)", f.Line, f.Column, f.Message, f.Hint)
	}
	if p == nil {
		t.FailNow()
	}
	var byServer map[string][]json.RawMessage
	if err := json.Unmarshal([]byte(tools), &byServer); err != nil {
		t.Fatalf("tools.json: %v", err)
	}
	var defs []gate.Definition
	for server, ds := range byServer {
		for _, d := range ds {
			defs = append(defs, gate.Definition{Server: server, Raw: d})
		}
	}
	slices.SortFunc(defs, func(a, b gate.Definition) int {
		return strings.Compare(a.Server+string(a.Raw), b.Server+string(b.Raw))
	})
	c, _ := gate.NewCatalogue(defs, p)
	return p, c
}

func (r *run) enter(id string) {
	if r.sessions[id] == nil {
		key := [32]byte{1, 2, byte(len(r.sessions))}
		r.sessions[id] = gate.NewSession(id, key, provenance.Caps{})
		r.records[r.sessions[id]] = newRecords(id, key)
	}
	r.session = r.sessions[id]
}

func (r *run) steps() {
	for i, line := range strings.Split(r.script, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		r.line = i + 1
		r.step(line)
	}
	if r.pending {
		r.fail("the last step expects nothing")
	}
}

func (r *run) fail(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("steps:%d (%s): %s", r.line, r.what, fmt.Sprintf(format, args...))
}

func (r *run) expect() {
	r.checks++
	r.pending = false
}

func (r *run) step(line string) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	one, two, _ := strings.Cut(rest, " ")
	two = strings.TrimSpace(two)
	switch word {
	case "session":
		r.enter(rest)
	case "nosession":
		r.session = nil
	case "shadow":
		r.shadow = rest == "on"
	case "own":
		r.own = append(r.own, rest)
	case "resolve":
		r.resolved[one] = nil
		if two != "" {
			r.resolved[one] = strings.Split(two, " ")
		}
	case "unresolved":
		r.unresolved = strings.Fields(rest)
	case "elsewhere":
		r.elsewhere = true
	case "program":
		r.programs = append(r.programs, rest)
	case "base":
		r.bases = append(r.bases, rest)
	case "answers":
		r.answers = []byte(rest)
	case "reopen":
		r.session.Reopen()
	case "settle": // happened or not, of the last call or of one that is held
		d := r.last
		if two != "" {
			d = r.held[two]
		}
		r.session.Settle(d, one == "happened")
	case "keep", "remove": // a line from now on, and the last one
		if r.kept = append(r.kept, "  - "+rest+"\n"); word == "remove" {
			r.kept = r.kept[:len(r.kept)-2]
		}
		grown := ""
		if len(r.kept) > 0 {
			grown = "grown:\n" + strings.Join(r.kept, "")
		}
		all, _ := policy.WithGrown([]byte(r.written), []byte(grown))
		r.policy, r.catalogue = newWorld(r.t, string(all), r.tools)
	case "clear":
		n, _ := strconv.ParseUint(rest, 10, 64)
		r.lowered++
		if !r.places.Clear(n, r.lowered) {
			r.t.Fatalf("steps:%d: no place %s", r.line, rest)
		}
	case "lowers":
		r.expect()
		if rest != "-" && r.says != rest || rest == "-" && r.says != "" {
			r.fail("lowers %q, want %q", r.says, rest)
		}
	case "call", "look": // of the agent, of Writ for itself
		server, tool, _ := strings.Cut(one, "/")
		r.look = word == "look"
		r.call(gate.Call{Server: server, Tool: tool}, two)
		r.look = false
	case "looks": // the reads that would help the last call
		r.expect()
		got := []string{}
		for _, c := range r.last.Looks() {
			got = append(got, c.Server+"/"+c.Tool+" "+string(c.Arguments.Raw()))
		}
		if all := strings.Join(got, " "); all != strings.Trim(rest, "-") {
			r.fail("looks %q, want %q", all, rest)
		}
	case "method":
		method, args, _ := strings.Cut(two, " ")
		r.call(gate.Call{Server: one, Method: policy.Method(method)}, args)
	case "repeat":
		n, _ := strconv.Atoi(one)
		for range n {
			r.pending = false
			r.step(strings.ReplaceAll(two, "%d", strconv.Itoa(r.checks+1000000)))
			r.checks++
		}
	case "allow":
		r.expect()
		if !r.last.Allowed() || r.last.Outcome.Status != writ.Accepted || r.last.Shadow {
			r.fail("got %s, want accepted", r.outcome)
		}
	case "transform":
		r.expect()
		if !r.last.Allowed() || r.last.Outcome.Status != writ.Transformed || string(r.last.Arguments.Raw()) != rest || string(r.last.Outcome.Proposal.Payload) != rest {
			r.fail("got %s %s, want %s", r.outcome, r.last.Arguments.Raw(), rest)
		}
	case "deny":
		r.expect()
		if r.last.Allowed() {
			r.fail("accepted, want %s", rest)
		}
		r.rejected(one, strings.Fields(two))
	case "pass": // in shadow mode
		r.expect()
		if !r.last.Allowed() || !r.last.Shadow {
			r.fail("did not pass in shadow mode: %s", r.outcome)
		}
		if one == "accepted" {
			if r.last.Outcome.Status != writ.Accepted {
				r.fail("got %s, want accepted", r.outcome)
			}
			return
		}
		r.rejected(one, strings.Fields(two))
	case "same":
		r.expect()
		if !bytes.Equal(r.outcome, r.before) {
			r.fail("refusals differ\n%s\n%s", r.before, r.outcome)
		}
	case "trace":
		r.expect()
		r.trace(strings.Fields(rest))
	case "contested", "uncontested":
		r.expect()
		for _, tr := range r.last.Traces {
			if tr.Pointer == rest && tr.Contested == (word == "contested") {
				return
			}
		}
		r.fail("%s is not %s", rest, word)
	case "need":
		r.expect()
		for _, f := range r.last.Outcome.Rejection.Failures {
			if f.Pointer == one || one == "." && f.Pointer == "" {
				if !strings.Contains(f.Need, two) {
					r.fail("need of %s is %q, want %q in it", one, f.Need, two)
				}
				return
			}
		}
		r.fail("no failure at %s", one)
	case "hide": // neither the outcome nor the record holds the value
		r.expect()
		if bytes.Contains(r.outcome, []byte(rest)) || bytes.Contains(r.last.Record(), []byte(rest)) {
			r.fail("%q stands in the outcome or the record", rest)
		}
	case "explain":
		r.expect()
		rec, err := gate.ParseRecord(r.last.Record())
		if err != nil {
			r.fail("%v", err)
			return
		}
		if all := strings.Join(gate.Explain(rec), "\n"); !strings.Contains(all, rest) {
			r.fail("got\n%s\nwant %q in it", all, rest)
		}
	case "turn":
		text, err := strconv.Unquote(rest)
		if err != nil {
			r.t.Fatalf("steps:%d: a turn is quoted as in Go: %v", r.line, err)
		}
		r.turn(text)
	case "asked":
		r.asked = gate.Asked(strings.TrimPrefix(rest, "nobody"))
	case "clock":
		d, err := time.ParseDuration(rest)
		if err != nil {
			r.t.Fatalf("steps:%d: %v", r.line, err)
		}
		r.passed += d
	case "asks": // of the last call, a person, exactly these
		r.expect()
		var got []string
		if ask := r.last.Ask(); ask != nil {
			for _, v := range ask.Values {
				seen := ""
				for _, at := range v.Seen {
					seen += fmt.Sprintf(",ev%d:%s:%s", at.Evidence, at.Tool, at.Label)
				}
				if v.Placed {
					seen += ",placed"
				}
				got = append(got, cmp.Or(v.Pointer, ".")+"="+string(v.Reason)+seen)
			}
		}
		if want := strings.Fields(rest); !slices.Equal(got, want) && (rest != "-" || got != nil) {
			r.fail("asks %v, want %v", got, want)
		}
	case "grows": // of a value that is asked about: an output that may be kept for it
		r.expect()
		from, writes, _ := strings.Cut(two, " ")
		for _, v := range r.last.Ask().Values {
			if v.Pointer == one && slices.ContainsFunc(v.Grows, func(g policy.Grown) bool { return g.From == from && g.Writes == writes }) {
				return
			}
		}
		r.fail("nothing of %s may be kept for %s", two, one)
	case "approve": // yes or no, by a name: the last call that asked
		if ask := r.last.Ask(); ask != nil {
			r.ask = ask
		}
		n := r.session.Next()
		o := r.session.Approve(n, gate.Approval{Act: r.ask.Act, Covers: r.ask.Covers(), Yes: one == "yes", By: two, Label: writ.User, At: r.now()})
		r.session.Commit(o)
		if !o.Admissible || r.session.Next() != n+1 {
			r.fail("the answer is not taken in")
		}
		said := certificate.Approval{Evidence: n, Act: r.ask.Act, Yes: one == "yes", Label: writ.User, At: r.now()}
		covers, _ := json.Marshal(r.ask.Covers())
		r.records[r.session].tell(func(s *certificate.Session, alter func(uint32, []byte) []byte) {
			said.Covers = nil
			if json.Unmarshal(alter(n, covers), &said.Covers) != nil {
				r.fail("what the answer covers cannot be read")
			}
			s.Approve(said)
		})
	case "lapse":
		r.session.Lapse()
		r.records[r.session].tell(func(s *certificate.Session, _ func(uint32, []byte) []byte) { s.Lapse() })
	case "hold":
		r.held[rest] = r.last
	case "result":
		r.observe(r.last, gate.OK, rest)
	case "answer":
		r.observe(r.held[one], gate.OK, two)
	case "status":
		r.observe(r.last, gate.Status(one), two)
	case "facts":
		r.expect()
		if n, _ := strconv.Atoi(rest); !r.obs.Admissible || r.obs.Facts != n || r.obs.Why != "" {
			r.fail("got %+v, want %s facts", *r.obs, rest)
		}
	case "vouches": // admissible, however many facts
		r.expect()
		if !r.obs.Admissible || r.obs.Why != "" {
			r.fail("got %q, want an admissible result", r.obs.Why)
		}
	case "why":
		r.expect()
		if r.obs.Admissible || r.obs.Why != rest || r.obs.Facts != 0 {
			r.fail("got %+v, want %q", *r.obs, rest)
		}
	default:
		r.t.Fatalf("steps:%d: unknown word %q", r.line, word)
	}
}

func (r *run) call(c gate.Call, args string) {
	if r.pending {
		r.fail("nothing was expected of it")
	}
	r.pending = true
	r.what = c.Server + "/" + c.Tool + string(c.Method) + " " + args
	if args != "-" && args != "" {
		c.Arguments = strictjson.Of([]byte(args))
	}
	c.Answers, r.answers = strictjson.Of(r.answers), nil
	in := gate.Input{
		Policy: r.policy, Catalogue: r.catalogue, Session: r.session, Call: c, Shadow: r.shadow,
		Time: r.now(), Asked: r.asked, OwnPaths: r.own, Programs: r.programs, Bases: r.bases,
		Elsewhere: r.elsewhere, Resolved: r.resolved, Unresolved: r.unresolved, Look: r.look,
	}
	d := gate.Decide(in)
	again := gate.Decide(in)
	if !bytes.Equal(d.Record(), again.Record()) {
		r.fail("two runs over one input differ")
	}
	_, _, in.Reading = gate.Texts(in)
	for range 2 { // a reading is read from, never written to
		if read := gate.Decide(in); !bytes.Equal(d.Record(), read.Record()) || !bytes.Equal(d.Arguments.Raw(), read.Arguments.Raw()) {
			r.fail("the call as it was read before is decided otherwise")
		}
	}
	in.Own = gate.OwnPlacesOf(in.OwnPaths, in.Programs, in.Bases)
	for range 2 { // nor are these
		if own := gate.Decide(in); !bytes.Equal(d.Record(), own.Record()) {
			r.fail("with its own places taken apart before it is decided otherwise")
		}
	}
	in.Own = gate.OwnPlacesOf([]string{"/other"}, nil, []string{"/"})
	if other := gate.Decide(in); !bytes.Equal(d.Record(), other.Record()) {
		r.fail("it is decided by the places of others")
	}
	defer func() { r.read = in.Reading }()
	if in.Reading = r.read; in.Reading != nil {
		if other := gate.Decide(in); !bytes.Equal(d.Record(), other.Record()) {
			r.fail("it is decided by another call's reading")
		}
	}
	// P20: what was judged is what is sent.
	if d.Outcome.Status != writ.Transformed && !bytes.Equal(d.Arguments.Raw(), c.Arguments.Raw()) {
		r.fail("the arguments to send are not those judged")
	}
	rec, err := gate.ParseRecord(d.Record())
	if err != nil || len(gate.Explain(rec)) == 0 {
		r.fail("the record cannot be read back: %v", err)
	}
	if d.Allowed() != rec.Allowed {
		r.fail("the record says otherwise")
	}
	if rj := d.Outcome.Rejection; rj != nil {
		for i, f := range rj.Failures {
			if writ.CodeOf(f.Reason) != rj.Code {
				r.fail("%s is not reported under %s", f.Reason, rj.Code)
			}
			if i > 0 && rj.Failures[i-1].Pointer > f.Pointer {
				r.fail("failures are not sorted")
			}
			if f.Need == "" {
				r.fail("nothing says what %s needs", f.Reason)
			}
		}
	}
	r.certified(&d, in)
	if r.session != nil {
		r.session.Decided(&d)
	}
	r.says = ""
	r.placed = 0
	if p, ok := d.Lowers(r.places); ok {
		if r.says = p.Label.String(); p.Links {
			r.says = "links"
		}
		for _, at := range p.At {
			r.says += " " + at.Of + "=" + at.Text
		}
		if len(p.Rests) > 0 {
			r.says += " rests"
		}
		if !r.places.Covers(p) {
			r.lowered++
			r.placed = r.lowered
			r.places.Lower(r.lowered, p)
		}
	}
	r.last, r.before = &d, r.outcome
	r.outcome, err = json.Marshal(d.Outcome)
	if err != nil {
		r.fail("%v", err)
	}
}

// now is when the case is at.
func (r *run) now() time.Time { return time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).Add(r.passed) }

func (r *run) rejected(code string, failures []string) {
	rj := r.last.Outcome.Rejection
	if rj == nil {
		r.fail("got %s, want %s", r.outcome, code)
		return
	}
	var got []string
	for _, f := range rj.Failures {
		p := f.Pointer
		if p == "" {
			p = "."
		}
		got = append(got, p+"="+string(f.Reason))
	}
	if string(rj.Code) != code || !slices.Equal(got, failures) || rj.Reason != rj.Failures[0].Reason {
		r.fail("got %s %s\nwant %s %s", rj.Code, strings.Join(got, " "), code, strings.Join(failures, " "))
	}
}

// trace POINTER RULE LABEL [EVIDENCE …]; RULE "-" is none.
func (r *run) trace(f []string) {
	for _, tr := range r.last.Traces {
		if tr.Pointer != f[0] {
			continue
		}
		rule := tr.Rule
		if rule == "" {
			rule = "-"
		}
		var ev []string
		for _, e := range tr.Evidence {
			s := fmt.Sprintf("ev%d:%s:%s", e.Evidence, e.Tool, e.Pointer)
			if e.Tool == "user" {
				s = fmt.Sprintf("ev%d:user:%s", e.Evidence, strings.ReplaceAll(r.turns[e.Evidence][e.Start:e.End], " ", "_"))
			}
			if e.Line > 0 {
				s += fmt.Sprintf(":%d", e.Line)
			}
			ev = append(ev, s+e.Inner)
		}
		if rule != f[1] || tr.Label.String() != f[2] || (len(f) > 3 || f[1] == "-") && !slices.Equal(ev, f[3:]) {
			r.fail("trace of %s is %s %s %v, want %v", f[0], rule, tr.Label, ev, f[1:])
		}
		return
	}
	r.fail("no trace of %s", f[0])
}

func (r *run) turn(text string) {
	if r.pending {
		r.fail("nothing was expected of it")
	}
	r.pending = true
	r.what = "turn " + text
	n := r.session.Next()
	o := r.session.Turn(n, []byte(text), r.now())
	r.obs = &o
	r.session.Commit(o)
	if r.session.Next() != n+1 {
		r.fail("the turn took no number")
	}
	if at := r.now(); o.Admissible {
		r.records[r.session].tell(func(s *certificate.Session, alter func(uint32, []byte) []byte) {
			s.Turn(n, string(alter(n, []byte(text))), at)
		})
	}
	if r.turns == nil {
		r.turns = map[uint32]string{}
	}
	r.turns[n] = text
}

func (r *run) observe(d *gate.Decision, status gate.Status, result string) {
	if r.pending {
		r.fail("nothing was expected of it")
	}
	r.pending = true
	r.what = "result " + result
	res := gate.Result{Status: status, Time: r.now(), Places: r.places, Through: r.lowered, Own: r.placed}
	if result != "" {
		res.Value = strictjson.Of([]byte(result))
	}
	if r.session != nil {
		res.Evidence = r.session.Next()
	}
	o := r.session.Observe(d, res)
	r.obs = &o
	if r.session != nil {
		n := r.session.Next()
		r.session.Commit(o)
		if r.session.Next() != n+1 {
			r.fail("the result took no number")
		}
		r.answered(d, res, o.Admissible)
	}
}
