package memory

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/memory"
)

// cases are the scenarios, a file each; README.md says how one is written.
//
//go:embed cases
var embedded embed.FS

// Bundle is what every system is run on: the scenarios, expanded, in their
// order.
type Bundle struct {
	Seeds []uint64
	// Files is how many scenario files there are, Hash the SHA-256 of all of
	// them and of the seeds.
	Files int
	Hash  string
	runs  []*run
}

// Runs is how many runs of the stage there are.
func (b *Bundle) Runs(stage int) (n int) {
	for _, r := range b.runs {
		if r.stage == stage {
			n++
		}
	}
	return n
}

// run is one scenario with one choice of its parameters and one seed. Seed 0 is
// none.
type run struct {
	id, variant, family string
	stage               int
	seed                uint64
	profiles            []string
	clock0              time.Time
	sources             []source
	steps               []event
	expect              []expect
	truth               map[string][]truth
	// values are, for each slot, the values anybody speaks of: what a reader of
	// plain texts looks for.
	values map[string][]string
}

// name is what a person finds the run by.
func (r *run) name() string {
	out := r.id
	if r.variant != "" {
		out += " " + r.variant
	}
	if r.seed != 0 {
		out += fmt.Sprintf(" seed %d", r.seed)
	}
	return out
}

// attacks says whether a source is an attacker's.
func (r *run) attacks(id string) bool {
	return slices.ContainsFunc(r.sources, func(s source) bool { return s.ID.S == id && s.Attacker.Is })
}

// at is what is true of a slot at a time; the zero truth where nobody said.
func (r *run) at(slot string, at time.Duration) (now truth) {
	for _, t := range r.truth[slot] {
		if t.From.d <= at {
			now = t
		}
	}
	return now
}

// changed says whether the slot has had another value up to that time.
func (r *run) changed(slot string, at time.Duration) bool {
	first := ""
	for _, t := range r.truth[slot] {
		switch {
		case t.From.d > at || !t.Value.Given():
		case first == "":
			first = t.Value.S
		case first != t.Value.S:
			return true
		}
	}
	return false
}

// was says whether the value was true at some time up to then.
func (r *run) was(slot, value string, at time.Duration) bool {
	return slices.ContainsFunc(r.truth[slot], func(t truth) bool {
		return t.From.d <= at && t.Value.Given() && t.Value.S == value
	})
}

// event is one step, repeated ones each for itself.
type event struct {
	at       time.Duration
	kind     eventKind
	tool     string // or the operator's command
	as       string
	from     string
	session  string
	slot     string
	question string
	is       string
	corrects string
	payload  []byte
}

type eventKind int

const (
	proposes eventKind = iota
	operates
	reads
	ticks
)

// load reads all scenarios and expands them. Every fault of every file is told.
func load(files fs.FS, seeds []uint64) (*Bundle, error) {
	entries, err := fs.ReadDir(files, "cases")
	if err != nil {
		return nil, fmt.Errorf("the scenarios are not there")
	}
	b := &Bundle{Seeds: seeds}
	h := sha256.New()
	seen := map[string]string{}
	var faults []string
	for _, e := range entries {
		if e.Name() == "README.md" {
			continue
		}
		file := path.Join("cases", e.Name())
		text, err := fs.ReadFile(files, file)
		if err != nil || !strings.HasSuffix(file, ".yaml") {
			faults = append(faults, file+": not a scenario: its name ends in .yaml")
			continue
		}
		fmt.Fprintf(h, "%d:%s,%d:%s,", len(file), file, len(text), text)
		runs, fs := expand(file, text, seeds)
		for _, f := range fs {
			faults = append(faults, f.String())
		}
		if len(runs) > 0 {
			if where := seen[runs[0].id]; where != "" {
				faults = append(faults, fmt.Sprintf("%s: the id %s stands in %s too", file, runs[0].id, where))
			}
			seen[runs[0].id] = file
		}
		b.Files++
		b.runs = append(b.runs, runs...)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("the scenarios cannot be read: %s", strings.Join(faults, "\n"))
	}
	if len(b.runs) == 0 {
		return nil, fmt.Errorf("there is no scenario")
	}
	slices.SortStableFunc(b.runs, func(x, y *run) int {
		return cmp.Or(cmp.Compare(x.stage, y.stage), strings.Compare(x.id, y.id))
	})
	fmt.Fprint(h, seeds)
	b.Hash = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return b, nil
}

// expand makes the runs of one file: for each choice of its parameters and each
// seed.
func expand(file string, text []byte, seeds []uint64) (out []*run, faults []strictyaml.Fault) {
	r := strictyaml.New(file)
	root := r.Parse(text, "a scenario has at least id, stage, family, seed, clock0, steps and expect")
	if root == nil {
		return nil, r.Faults()
	}
	var h head
	for key, into := range map[string]any{"id": &h.ID, "seed": &h.Seed, "params": &h.Params, "draw": &h.Draw} {
		if n := root.Get(key); n != nil {
			r.Decode(n, into)
		}
	}
	variants := [][]string{{}}
	for _, e := range h.Params.Entries {
		var more [][]string
		for _, v := range variants {
			for _, it := range e.Value.items {
				more = append(more, append(slices.Clone(v), e.Key.Value, it))
			}
		}
		variants = more
	}
	for _, e := range h.Draw.Entries {
		if lists[e.Value.S] == nil {
			r.Fault(e.Value.Node, "a list to draw from is expected here", strictyaml.Nearest(e.Value.S, slices.Collect(maps.Keys(lists))))
		}
	}
	if len(variants) > maxVariants {
		r.Fault(root, "a scenario has at most 60 variants", "")
	}
	if r.Count() > 0 {
		return nil, r.Faults()
	}
	if h.Seed.S == "none" {
		seeds = []uint64{0}
	}
	for _, seed := range seeds {
		for _, v := range variants {
			one, faults := instance(file, string(text), &h, v, seed)
			if len(faults) > 0 {
				return nil, faults // the others have the same
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// random is the generator of one scenario, from its id, its variant and the
// seed alone.
func random(seed uint64, names ...string) *rand.Rand {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d|%s", seed, strings.Join(names, "|")))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
}

// deck deals the words of a list, each once.
type deck struct {
	rng *rand.Rand
	by  map[string][]string
}

func (d *deck) deal(list string) string {
	if len(d.by[list]) == 0 {
		d.by[list] = slices.Clone(lists[list])
		d.rng.Shuffle(len(d.by[list]), func(i, j int) { d.by[list][i], d.by[list][j] = d.by[list][j], d.by[list][i] })
	}
	w := d.by[list][0]
	d.by[list] = d.by[list][1:]
	return w
}

// instance puts one choice into the text of a file and reads it. What is put in
// has no line break, so that a fault has the file's line.
func instance(file, text string, h *head, choice []string, seed uint64) (*run, []strictyaml.Fault) {
	variant := ""
	var pairs []string
	for i := 0; i < len(choice); i += 2 {
		variant = strings.TrimSpace(variant + " " + choice[i] + "=" + choice[i+1])
		pairs = append(pairs, "<"+choice[i]+">", choice[i+1])
	}
	d := &deck{rng: random(seed, h.ID.S, variant), by: map[string][]string{}}
	for _, e := range h.Draw.Entries {
		pairs = append(pairs, "<"+e.Key.Value+">", d.deal(e.Value.S))
	}
	r := strictyaml.New(file)
	text = strings.NewReplacer(pairs...).Replace(text)
	for i, line := range strings.Split(text, "\n") {
		if at := placeholder.FindStringIndex(line); at != nil && !strings.HasPrefix(line, "#") {
			r.FaultAt(i+1, at[0]+1, "nothing is put in for "+strictyaml.Word(line[at[0]:at[1]]), "declare it in params or draw")
		}
	}
	root := r.Parse([]byte(text), "")
	if root == nil {
		return nil, r.Faults()
	}
	s := &scenario{}
	if r.Decode(root, s); r.Count() == 0 {
		s.check(r)
	}
	if r.Count() > 0 {
		return nil, r.Faults()
	}
	out := &run{id: s.ID.S, variant: variant, family: s.Family.S, stage: s.Stage.N, seed: seed, clock0: s.clock0, truth: map[string][]truth{}, values: map[string][]string{}}
	for _, p := range s.Profiles.Items {
		out.profiles = append(out.profiles, p.S)
	}
	for _, src := range s.Sources.Items {
		n := max(1, src.Count.N)
		for i := range n {
			one := src
			one.ID.S = counted(src.ID.S, i)
			out.sources = append(out.sources, one)
		}
	}
	for i := range s.Steps.Items {
		out.add(&s.Steps.Items[i])
	}
	out.expect = append(out.expect, s.Expect.Items...)
	for _, e := range s.Truth.Entries {
		out.truth[e.Key.Value] = e.Value.Items
	}
	if s.Chain.Given() {
		s.Chain.generate(out, d)
	}
	slices.SortStableFunc(out.steps, func(a, b event) int { return cmp.Compare(a.at, b.at) }) // repeated ones last a while
	slices.SortStableFunc(out.expect, func(a, b expect) int { return cmp.Compare(a.At.d, b.At.d) })
	out.collect()
	return out, nil
}

var placeholder = regexp.MustCompile(`<[a-z][a-z0-9_]*>`)

func counted(s string, i int) string { return strings.ReplaceAll(s, "{i}", strconv.Itoa(i+1)) }

// add expands one step.
func (r *run) add(s *step) {
	for i := range max(1, s.Repeat.Times.N) {
		e := event{at: s.At.d + time.Duration(i)*s.Repeat.Every.d, as: s.As.S, from: counted(s.From.S, i), session: cmp.Or(s.Session.S, "s1"),
			slot: s.Read.S, question: s.Question.S, is: s.Is.S, corrects: s.Corrects.S, payload: []byte(counted(string(s.payload), i))}
		switch {
		case s.Operator.Given():
			e.kind, e.tool = operates, s.Operator.S
		case s.Read.Given():
			e.kind = reads
		case s.Tick.Is:
			e.kind = ticks
		default:
			e.kind, e.tool = proposes, s.Tool.S
		}
		r.steps = append(r.steps, e)
	}
}

// collect lists the values that are spoken of, by slot.
func (r *run) collect() {
	put := func(slot, v string) {
		if v != "" && !slices.Contains(r.values[slot], v) {
			r.values[slot] = append(r.values[slot], v)
		}
	}
	for i := range r.steps {
		if e := &r.steps[i]; e.kind == proposes && e.tool == memory.ToolPropose {
			c := claimOf(e.payload)
			put(c.slot, c.value)
		}
	}
	for slot, ts := range r.truth {
		for _, t := range ts {
			put(slot, t.Value.S)
		}
	}
	for slot := range r.values {
		slices.Sort(r.values[slot])
	}
}

// lists are what is drawn from. No word is a part of another.
var lists = map[string][]string{
	"person":  {"Alina", "Bogdan", "Cosima", "Dorian", "Elspeth", "Florian", "Greta", "Hakon", "Ilse", "Jorun", "Katya", "Lorenz", "Mirela", "Nestor", "Oksana", "Pavel"},
	"city":    {"Aarhus", "Bergamo", "Cluj", "Dresden", "Evora", "Fribourg", "Ghent", "Haarlem", "Izmir", "Jaffa", "Kaunas", "Lviv", "Malaga", "Nantes", "Odense", "Porto"},
	"company": {"Amberline", "Birchworks", "Copperfold", "Driftmark", "Elmstead", "Fernhill", "Gorsehall", "Hazelrig", "Ironbeck", "Juniperco", "Kestrelux", "Larchmont"},
	"ship":    {"Albatross", "Bittern", "Curlew", "Dunlin", "Egret", "Fulmar", "Gannet", "Heron", "Ibis", "Jacana"},
}
