package memory

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/words"
)

// digests holds what logs come to: a line for each case file and each drawn
// past, with the SHA-256 of the log, and of the state and all that was answered
// and read. `make arm64` compares it on another processor, whose float64
// functions round otherwise.
const digests = "testdata/golden/digests.txt"

// TestSameOnEveryMachine holds every log, state and reading to the digests that
// are committed. Where the memory decides otherwise than it did, on purpose,
// -update writes them anew; a difference on one kind of machine alone is a
// defect of the memory.
func TestSameOnEveryMachine(t *testing.T) {
	var out strings.Builder
	out.WriteString("# What logs come to, to the byte: TestSameOnEveryMachine. Made with -update.\n" +
		"# name | events | refused | log | state and readings\n")
	files, _ := filepath.Glob("testdata/cases/*.txt")
	if len(files) < 10 {
		t.Fatalf("only %d files of cases were found", len(files))
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		x, told := newScript(t), sha256.New()
		for l := range strings.Lines(string(b)) {
			if l = strings.TrimSpace(l); l != "" && l[0] != '#' && !strings.HasPrefix(l, "->") {
				fmt.Fprintln(told, x.line(l))
			}
		}
		out.WriteString(digestLine("cases/"+filepath.Base(file), x, told))
	}
	for i, c := range []struct {
		profile string
		mode    Mode
		steps   int
	}{{"v1", Hardened, 2000}, {"v1", Local, 1200}, {"v01q", Hardened, 800}} {
		p := newPast(t, uint64(i+1), c.profile, c.mode)
		for range c.steps {
			p.step()
		}
		p.checkRich()
		if replay(t, p.log, nil).Digest() != p.s.Digest() {
			t.Errorf("%s %s: the log does not fold to the same state", c.profile, c.mode)
		}
		out.WriteString(digestLine("past "+c.profile+" "+string(c.mode), p.script, p.told))
	}
	for _, profile := range []string{"v1", "v01q"} {
		out.WriteString(scoresLine(t, profile))
	}
	if *update {
		if err := os.WriteFile(digests, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(digests)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for l := range strings.Lines(string(b)) {
		name, _, _ := strings.Cut(l, " | ")
		want[name] = l
	}
	for l := range strings.Lines(out.String()) {
		name, _, _ := strings.Cut(l, " | ")
		if want[name] != l {
			t.Errorf("on %s:\n got %swant %s", runtime.GOARCH, l, cmp.Or(want[name], "no such line\n"))
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("nothing is called %q any more", name)
	}
	if t.Failed() {
		t.Logf("%s says otherwise; if this is meant: go test ./memory -run '^TestSameOnEveryMachine$' -update", digests)
	}
}

// digestLine is a log in one line. told has seen what was answered.
func digestLine(name string, x *script, told hash.Hash) string {
	log, refused := sha256.New(), 0
	for _, r := range x.log {
		fmt.Fprintf(log, "%d %s%d %s", len(r.event), r.event, len(r.value), r.value)
		e, err := ParseEvent(r.event)
		if err != nil {
			x.t.Fatal(err)
		}
		if e.Status == writ.Rejected {
			refused++
		}
	}
	for id, text := range x.s.Texts() {
		fmt.Fprintln(told, id, mustJSON(x.t, text))
	}
	if err := x.s.Encode(told); err != nil {
		x.t.Fatal(err)
	}
	return fmt.Sprintf("%s | %d | %d | %s | %s\n", name, len(x.log), refused, hex.EncodeToString(log.Sum(nil)), hex.EncodeToString(told.Sum(nil)))
}

// scoresLine is many scores in one line: ages to the microsecond, weights to
// the millionth.
func scoresLine(t *testing.T, profile string) string {
	p := builtinPolicy(t, profile)
	rng := rand.New(rand.NewPCG(7, 7))
	side := func() (gs []Group) {
		for range rng.IntN(5) {
			gs = append(gs, Group{Count: rng.IntN(5), Reliability: Micro(rng.Int64N(int64(One) + 1)), Uncounted: rng.IntN(5) == 0})
		}
		return gs
	}
	const n = 10_000
	h, exact := sha256.New(), 0
	for range n {
		e := Evidence{Support: side(), Contradict: side(), Volatility: []TierName{Low, Medium, High, Durable, Static}[rng.IntN(5)],
			Age: time.Duration(rng.Int64N(500*3_600_000_000)) * time.Microsecond}
		fmt.Fprintln(h, mustJSON(t, p.Score(e)))
		sup, con := p.side(e.Support), p.side(e.Contradict)
		tier, decays := p.tier(e.Volatility)
		if !p.fast(new(Score), &sup, &con, e.Age, tier, decays) {
			exact++
		}
	}
	if exact < n/1000 {
		t.Errorf("%s: only %d of %d scores lie where float64 is not sure", profile, exact, n)
	}
	return fmt.Sprintf("scores %s | %d | 0 | - | %s\n", profile, n, hex.EncodeToString(h.Sum(nil)))
}

// A past is a long history drawn from a seed with integers alone, so that the
// draw itself is the same everywhere. Time goes on by amounts that are odd to
// the microsecond.
type past struct {
	*script
	rng  *rand.Rand
	told hash.Hash
	n    int
	met  map[Rule]bool // what propositions came to, decided or read
	aged int           // readings with a freshness between 0 and 1
}

func newPast(t *testing.T, seed uint64, profile string, mode Mode) *past {
	p := &past{script: newScript(t), rng: rand.New(rand.NewPCG(seed, 0)), told: sha256.New(), met: map[Rule]bool{}}
	p.c.Policy, p.c.Mode = builtinPolicy(t, profile), mode
	p.operate(CommandOpen, []byte("{}"))
	for _, pd := range []string{
		`{"name":"city","single":true}`, `{"name":"colour"}`, `{"name":"price","volatility":"high"}`, `{"name":"born","single":true,"volatility":"low"}`,
		`{"name":"name","single":true,"self_report":true}`, `{"name":"cause","class":"causal"}`, `{"name":"howto","class":"procedural"}`,
	} {
		p.operate(CommandPredicate, []byte(pd))
	}
	for range 12 {
		p.tool(ToolRecordObservation)
	}
	for range 4 {
		p.tool(ToolEntity)
	}
	return p
}

// pick takes one of the newest of what was made, seldom an older one.
func (p *past) pick(what string, newest int) string {
	ids := p.made[what]
	if len(ids) == 0 || p.rng.IntN(60) == 0 {
		return what + "_999999"
	}
	if p.rng.IntN(8) > 0 {
		ids = ids[max(0, len(ids)-newest):]
	}
	return ids[p.rng.IntN(len(ids))]
}

func (p *past) picks(what string, newest, most int) (ids []string) {
	for range 1 + p.rng.IntN(most) {
		if id := p.pick(what, newest); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func oneOf[T any](p *past, of ...T) T { return of[p.rng.IntN(len(of))] }

func (p *past) step() {
	pause := oneOf(p, 0, time.Second, 7*time.Second, time.Minute, time.Minute, 10*time.Minute, time.Hour)
	if p.rng.IntN(25) == 0 {
		pause = 60 * time.Hour
	}
	p.c.Now = p.c.Now.Add(time.Duration(p.rng.Int64N(int64(pause/time.Microsecond)+1)) * time.Microsecond)
	p.c.Task = fmt.Sprintf("t%d", (p.n+p.rng.IntN(15))/90)
	p.c.Session = fmt.Sprintf("s%d", p.n/500)
	p.c.Principal = oneOf(p, "alice", "alice", "bob")
	if p.rng.IntN(40) == 0 {
		p.command()
	} else {
		p.tool(oneOf(p, ToolRecordObservation, ToolRecordObservation, ToolRecordObservation, ToolRecordObservation, ToolEntity, ToolPropose, ToolPropose,
			ToolAttachSupport, ToolAttachSupport, ToolAttachContra, ToolProposeTest, ToolTestResult, ToolConsolidate, ToolArchiveEpisode))
	}
	if p.n++; p.n%10 == 0 {
		p.read()
	}
}

func (p *past) decided(d Decision) {
	for _, c := range d.Outcome.Transitions {
		p.met[c.Rule] = true
	}
	fmt.Fprintln(p.told, mustJSON(p.t, d.Outcome))
	p.apply(d)
}

var pastCities = []string{"Bern", "Basel", "Chur"}

func (p *past) observation() map[string]any {
	o := map[string]any{"observation_id": fmt.Sprintf("o%d", len(p.log)-p.rng.IntN(3)/2), "raw_payload": oneOf(p, pastCities...) + fmt.Sprintf(", said by number %d", len(p.log))}
	switch p.rng.IntN(8) {
	case 0:
		o["source_ref"] = oneOf(p, "https://example.com", "user", "a note")
	case 1:
		o["derived_from"] = p.picks("obs", 10, 2)
	case 2:
		o["event_time"] = InstantOf(p.c.Now.Add(time.Duration(p.rng.Int64N(400)-300) * time.Hour)).String()
	}
	return o
}

// tool proposes.
func (p *past) tool(tool string) {
	var v map[string]any
	switch tool {
	case ToolRecordObservation:
		v = p.observation()
	case ToolEntity:
		v = map[string]any{"name": oneOf(p, "Alice", "alice", "Alicia", "Bob", "B0b", "Robert Miller", "Robert Millers", fmt.Sprintf("Number %d", p.n*7919)),
			"entity_type": oneOf(p, "person", "person", "self"), "observation_ids": p.picks("obs", 10, 1)}
	case ToolPropose:
		about := p.pick("ent", 3)
		v = map[string]any{"text": "It is " + oneOf(p, pastCities...), "about": []string{about}, "observation_ids": p.picks("obs", 10, 3)}
		if p.rng.IntN(4) > 0 {
			v["structured_form"] = map[string]any{"subject": about, "predicate": oneOf(p, "city", "city", "colour", "price", "born", "name", "cause", "howto", "free"),
				"object": map[string]any{"literal": oneOf(p, pastCities...)}}
		}
	case ToolAttachSupport, ToolAttachContra:
		id, obs := p.pick("prop", 5), p.picks("obs", 12, 3)
		if pr := p.s.propositions.get(id); tool == ToolAttachContra && pr != nil && p.c.Policy.Flags.Grounded {
			obs = p.against(pr)[:1+p.rng.IntN(2)]
		}
		v = map[string]any{"proposition_id": id, "observation_ids": obs}
	case ToolProposeTest:
		outcomes := []string{"yes", "no"}
		discriminates, ids := map[string]any{}, p.picks("prop", 5, 2)
		for i, id := range ids {
			discriminates[id] = outcomes[i]
		}
		v = map[string]any{"proposition_ids": ids, "kind": "ask_user", "discriminates": discriminates, "action_impact": oneOf(p, "low", "high", "irreversible"),
			"estimated_cost": 0.1, "estimated_benefit": 0.5, "rationale_observation_ids": p.picks("obs", 10, 1)}
	case ToolTestResult:
		id, outcome, o := p.pick("test", 2), oneOf(p, "yes", "no", "other", "inconclusive"), p.observation()
		if test := p.s.tests.get(id); test != nil && p.c.Policy.Flags.Grounded && p.rng.IntN(2) == 0 {
			predicted := oneOf(p, test.Outcomes...)
			outcome, o["raw_payload"] = predicted.Outcome, textOf([]byte(p.s.propositions.get(predicted.Proposition).Literal))+fmt.Sprintf(", said by number %d", len(p.log))
		}
		v = map[string]any{"test_id": id, "outcome": outcome, "observation": o}
	case ToolConsolidate:
		v = map[string]any{"reason": oneOf(p, "task_boundary", "checkpoint")}
	case ToolArchiveEpisode:
		v = map[string]any{"summary_text": fmt.Sprintf("what happened until %d", p.n), "observation_ids": p.picks("obs", 10, 2)}
	}
	prop := writ.Proposal{ToolName: tool, Payload: []byte(mustJSON(p.t, v))}
	c := p.c
	if _, cites := Cites(prop); cites && p.rng.IntN(8) > 0 {
		k := Captured{Evidence: "s_1/ev1", Label: oneOf(p, writ.System, writ.System, writ.System, writ.User, writ.External, writ.Party), Source: oneOf(p, "a/x", "b/y", "c/z", "d/w", "e/v"),
			Verbatim: true, Whole: p.rng.IntN(4) > 0}
		if k.Label == writ.External {
			k.Class = oneOf(p, "", ClassWeb, ClassDocument, ClassPeerAgent, ClassOperator)
		}
		c.Captured = []Captured{k}
	}
	p.decided(Handle(p.s, c, prop))
}

// against are two of the newest observations, of two groups, that hold another
// value against a claim; else any.
func (p *past) against(pr *Proposition) (ids []string) {
	d := &draftEvent{State: p.s.draft(), p: p.c.Policy}
	for _, id := range p.made["obs"][max(0, len(p.made["obs"])-60):] {
		ob := p.s.observations.get(id)
		if len(ids) == 2 || len(ids) == 1 && ob.Group == p.s.observations.get(ids[0]).Group {
			continue
		}
		if ob.Status == Ingested && d.disputes(d.witness(ob), pr) != "" {
			ids = append(ids, id)
		}
	}
	return append(ids, p.pick("obs", 12), p.pick("obs", 12))
}

// command does one thing that an operator does.
func (p *past) command() {
	type args = map[string]any
	command, v := CommandSweep, args{}
	switch p.rng.IntN(10) {
	case 0:
		command, v = CommandErase, args{"observation_ids": p.picks("obs", 15, 8), "reason": "request"}
	case 1:
		command, v = CommandRule, args{"proposition_id": p.pick("prop", 10), "ruling": oneOf(p, "uphold", "refute")}
	case 2:
		command, v = CommandMerge, args{"from": p.pick("ent", 4), "into": p.pick("ent", 4)}
	case 3:
		command, v = CommandUnmerge, args{"from": p.pick("ent", 4), "into": p.pick("ent", 4)}
	case 4:
		command, v = CommandRetain, args{"episode_id": p.pick("epi", 4), "retention_class": oneOf(p, "transient", "standard", "legal_hold")}
	case 5:
		command, v = CommandCancelTest, args{"test_id": p.pick("test", 4)}
	case 6:
		command, v = CommandDistrust, args{"source": "e/v", "since": InstantOf(p.c.Now.Add(-30 * time.Hour)).String()}
	case 7:
		command, v = CommandSuspend, args{"source_id": "e/v", "suspended": false}
	}
	c := p.c
	c.Principal = "root"
	p.decided(Operate(p.s, c, command, []byte(mustJSON(p.t, v))))
}

// read reads at times nobody wrote at.
func (p *past) read() {
	r := p.reader()
	r.Now = r.Now.Add(time.Duration(p.rng.Int64N(100*3_600_000_000)) * time.Microsecond)
	if p.rng.IntN(4) == 0 {
		r.AsOf = p.c.Now.Add(-time.Duration(p.rng.Int64N(50*3_600_000_000)) * time.Microsecond)
	}
	for range 3 {
		id := p.pick("prop", 30)
		x, _ := r.Explain(id)
		if f := x.Proposition.Score.Freshness; 0 < f && f < One {
			p.aged++
		}
		p.met[x.Proposition.Rule] = true
		moments, _ := r.Timeline(id, 0, 50)
		fmt.Fprintln(p.told, mustJSON(p.t, []any{x, moments}))
	}
	var hits []words.Hit
	for _, id := range slices.Concat(p.picks("prop", 30, 12), p.picks("obs", 30, 12), p.picks("ent", 10, 4)) {
		hits = append(hits, words.Hit{ID: id, Score: float64(1 + p.rng.IntN(1000))})
	}
	slices.SortFunc(hits, func(a, b words.Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID)) })
	fmt.Fprintln(p.told, mustJSON(p.t, []any{r.rank(Query{Limit: 20, MinState: Tentative}, hits), r.Pending(p.c.Session, p.c.Task, 10),
		r.Answer(p.s.SlotOf(p.pick("ent", 5), "city", nil))}))
}

// checkRich holds that the past is one worth comparing.
func (p *past) checkRich() {
	refused := 0
	for _, r := range p.log {
		if bytes.Contains(r.event, []byte(`"status":"rejected"`)) {
			refused++
		}
	}
	if n := len(p.log); refused == 0 || refused > n/2 {
		p.t.Errorf("of %d events %d are refusals", n, refused)
	}
	if p.aged < p.n/10 {
		p.t.Errorf("only %d of %d readings were of what had aged", p.aged, p.n*3/10)
	}
	rules := []Rule{RuleAccepted, RuleProvisional, RuleTentative, RuleContestedConflict, RuleDeprecatedStale, RuleRejectedFailedTest, RuleRejectedSaturation}
	if p.c.Policy.Profile == "v1" {
		rules = append(rules, RuleTentativeLowTrust, RuleDeprecatedSuperseded)
	}
	for _, rule := range rules {
		if !p.met[rule] {
			p.t.Errorf("in %s %s nothing came to %s", p.c.Policy.Profile, p.c.Mode, rule)
		}
	}
}
