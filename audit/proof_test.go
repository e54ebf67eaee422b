package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// provable is a model's log, with its key as it is written.
func provable(tb testing.TB, sessions, each int) (m *model, key string) {
	_, key, err := GenerateKey(fixed(1), "writ.test/log")
	if err != nil {
		tb.Fatal(err)
	}
	m = newModel(tb)
	m.fill(sessions, each)
	return m, key
}

func (m *model) newest() []byte { return m.notes[len(m.notes)-1] }

// proofs are one of each kind, of a log of 36 records with a checkpoint after 16.
func proofs(tb testing.TB) (of map[string][]byte, m *model) {
	m, key := provable(tb, 3, 12)
	decision, err := ProveRecords(m, key, m.newest(), m.items[3], m.items[6])
	if err != nil {
		tb.Fatal(err)
	}
	growth, err := ProveGrowth(m, key, m.notes[0], m.newest())
	if err != nil {
		tb.Fatal(err)
	}
	return map[string][]byte{"decision": decision, "growth": growth}, m
}

func TestProof(t *testing.T) {
	of, m := proofs(t)
	p, err := CheckProof(of["decision"], m.vk)
	if err != nil || p.Checkpoint != m.checkpoint() || len(p.Records) != 2 || p.Older != (Checkpoint{}) {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, r := range p.Records {
		if it := m.items[3+3*i]; r.Index != it.Index || !bytes.Equal(r.Leaf, it.Leaf) || len(r.Values) != 1 || r.Record.N != it.N {
			t.Errorf("%+v is not %+v", r, it)
		}
	}
	p, err = CheckProof(of["growth"], nil)
	if err != nil || p.Checkpoint != m.checkpoint() || len(p.Records) != 0 || p.Older.Size != 16 {
		t.Errorf("%+v, %v", p, err)
	}
	for each := range 12 { // of every decision, and of nothing else, in logs of many sizes
		m, key := provable(t, 3, each+1)
		for i, it := range m.items {
			_, err := ProveRecords(m, key, m.newest(), it)
			if rec, _ := ParseRecord(it.Leaf); (err == nil) != (rec.Kind == KindDecision) {
				t.Errorf("record %d of %d: %v", i, len(m.items), err)
			}
		}
	}
}

// TestProofFlipped: with any bit of it changed, cut anywhere or made longer, a proof
// proves nothing. None is harmless: there is one spelling of all it says.
func TestProofFlipped(t *testing.T) {
	of, m := proofs(t)
	for name, whole := range of {
		for i := range whole {
			for bit := range 8 {
				changed := bytes.Clone(whole)
				changed[i] ^= 1 << bit
				if p, err := CheckProof(changed, m.vk); !errors.Is(err, ErrProof) || p != nil {
					t.Fatalf("%s: bit %d of byte %d of %q: %v", name, bit, i, whole[max(0, i-20):i+1], err)
				}
				if _, err := CheckProof(changed, nil); !errors.Is(err, ErrProof) {
					t.Fatalf("%s: bit %d of byte %d, by its own key: %v", name, bit, i, err)
				}
			}
			if _, err := CheckProof(whole[:i], m.vk); !errors.Is(err, ErrProof) {
				t.Fatalf("%s: cut at %d: %v", name, i, err)
			}
		}
		for _, tail := range []string{"\n", " ", "{}\n", "\x00", string(whole)} {
			if _, err := CheckProof(append(bytes.Clone(whole), tail...), m.vk); !errors.Is(err, ErrProof) {
				t.Errorf("%s with %q behind it: %v", name, tail, err)
			}
		}
	}
}

// TestProofChanged: who writes a proof anew, in the right spelling, proves no more by
// it, and less only by leaving out what an erasure leaves out too.
func TestProofChanged(t *testing.T) {
	of, m := proofs(t)
	_, otherKey, _ := GenerateKey(fixed(2), "writ.test/log")
	other, _ := testKey(t, "writ.test/log", 2)
	signed, _ := SignCheckpoint(m.size, m.root, other)
	for name, c := range map[string]struct {
		of     string
		change func(*proofLine)
		says   string // "" where it proves what is left
	}{
		"as it is":              {"decision", func(*proofLine) {}, ""},
		"no values":             {"decision", func(p *proofLine) { p.Records[0].Values = nil }, ""},
		"no result":             {"decision", func(p *proofLine) { p.Records = p.Records[:1] }, ""},
		"no record":             {"decision", func(p *proofLine) { p.Records = nil }, "as it is written"},
		"another version":       {"decision", func(p *proofLine) { p.Proof = 2 }, "as it is written"},
		"three records":         {"decision", func(p *proofLine) { p.Records = append(p.Records, p.Records[1]) }, "as it is written"},
		"both kinds":            {"growth", func(p *proofLine) { p.Records = make([]proofRecord, 1) }, "as it is written"},
		"a path too many":       {"decision", func(p *proofLine) { p.Path = []Hash{{}} }, "from nowhere"},
		"a result alone":        {"decision", func(p *proofLine) { p.Records = p.Records[1:] }, "no decision"},
		"decision twice":        {"decision", func(p *proofLine) { p.Records[1] = p.Records[0] }, "no decision"},
		"the wrong way round":   {"decision", func(p *proofLine) { slices.Reverse(p.Records) }, "no decision"},
		"a neighbour's place":   {"decision", func(p *proofLine) { p.Records[0].Index++ }, "does not stand"},
		"before the log":        {"decision", func(p *proofLine) { p.Records[0].Index = -1 }, "does not stand"},
		"behind the log":        {"decision", func(p *proofLine) { p.Records[0].Index = m.size }, "does not stand"},
		"a shorter path":        {"decision", func(p *proofLine) { p.Records[0].Path = p.Records[0].Path[1:] }, "does not stand"},
		"a longer path":         {"decision", func(p *proofLine) { p.Records[0].Path = append(p.Records[0].Path, Hash{}) }, "does not stand"},
		"an older checkpoint":   {"decision", func(p *proofLine) { p.Checkpoint = string(m.notes[0]) }, "does not stand"},
		"no checkpoint":         {"decision", func(p *proofLine) { p.Checkpoint = "" }, "not signed"},
		"a value of the other":  {"decision", func(p *proofLine) { p.Records[0].Values = p.Records[1].Values }, "not the one"},
		"a value twice":         {"decision", func(p *proofLine) { p.Records[0].Values = append(p.Records[0].Values, p.Records[0].Values[0]) }, "not the one"},
		"a short salt":          {"decision", func(p *proofLine) { p.Records[0].Values[0].Salt = nil }, "cannot be read"},
		"another salt":          {"decision", func(p *proofLine) { p.Records[0].Values[0].Salt[0]++ }, "not the one"},
		"no leaf":               {"decision", func(p *proofLine) { p.Records[0].Leaf = "{}" }, "cannot be read"},
		"a key that is none":    {"decision", func(p *proofLine) { p.Key = "key" }, "its key is none"},
		"a key, otherwise":      {"decision", func(p *proofLine) { p.Key += "\n" }, "its key is none"},
		"another key":           {"decision", func(p *proofLine) { p.Key = otherKey }, "of another key"},
		"another's signature":   {"decision", func(p *proofLine) { p.Checkpoint = string(signed) }, "not signed"},
		"nothing grew":          {"growth", func(p *proofLine) { p.Older, p.Path = p.Checkpoint, nil }, ""},
		"it shrank":             {"growth", func(p *proofLine) { p.Older, p.Checkpoint = p.Checkpoint, p.Older }, "does not begin"},
		"another older":         {"growth", func(p *proofLine) { p.Older = string(m.notes[1]) }, "does not begin"},
		"older of another key":  {"growth", func(p *proofLine) { p.Older = string(signed) }, "older checkpoint is not signed"},
		"growth without a path": {"growth", func(p *proofLine) { p.Path = nil }, "does not begin"},
	} {
		var p proofLine
		if err := json.Unmarshal(of[c.of], &p); err != nil {
			t.Fatal(err)
		}
		c.change(&p)
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		_, err = CheckProof(append(b, '\n'), m.vk)
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, ErrProof) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// a whole log and its proof by another key, of the same name
	p := strings.NewReplacer(string(mustJSON(t, string(m.newest()))), string(mustJSON(t, string(signed))), keyIn(t, of["decision"]), otherKey).Replace(string(of["decision"]))
	if _, err := CheckProof([]byte(p), nil); err != nil {
		t.Errorf("the other's own: %v", err)
	}
	if _, err := CheckProof([]byte(p), m.vk); !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), "of another key") {
		t.Errorf("another's, held to our key: %v", err)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func keyIn(t *testing.T, b []byte) string {
	var p proofLine
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	return p.Key
}

// TestProve: what cannot be proven is not written down.
func TestProve(t *testing.T) {
	m, key := provable(t, 3, 12)
	lying := m.items[3]
	lying.Leaf = m.items[9].Leaf
	unkept := m.items[3]
	unkept.Values = []Value{{Name: "arguments"}}
	short := newModel(t)
	short.fill(1, 20) // another log of the same key
	for name, prove := range map[string]func() ([]byte, error){
		"another record":        func() ([]byte, error) { return ProveRecords(m, key, m.newest(), lying) },
		"another value":         func() ([]byte, error) { return ProveRecords(m, key, m.newest(), unkept) },
		"a checkpoint too old":  func() ([]byte, error) { return ProveRecords(m, key, m.notes[0], m.items[33]) },
		"another's checkpoint":  func() ([]byte, error) { return ProveRecords(m, key, short.newest(), m.items[3]) },
		"no checkpoint":         func() ([]byte, error) { return ProveRecords(m, key, nil, m.items[3]) },
		"no key":                func() ([]byte, error) { return ProveRecords(m, "", m.newest(), m.items[3]) },
		"from another log":      func() ([]byte, error) { return ProveGrowth(m, key, short.newest(), m.newest()) },
		"from longer to short":  func() ([]byte, error) { return ProveGrowth(m, key, m.newest(), m.notes[0]) },
		"from no checkpoint":    func() ([]byte, error) { return ProveGrowth(m, key, []byte("x"), m.newest()) },
		"growth without a key":  func() ([]byte, error) { return ProveGrowth(m, "", m.notes[0], m.newest()) },
		"beyond what there is":  func() ([]byte, error) { return ProveGrowth(short, key, m.notes[0], m.newest()) },
		"another call's result": func() ([]byte, error) { return ProveRecords(m, key, m.newest(), m.items[3], m.items[12]) },
		"another's result":      func() ([]byte, error) { return ProveRecords(m, key, m.newest(), m.items[3], m.items[7]) },
		"a result and its call": func() ([]byte, error) { return ProveRecords(m, key, m.newest(), m.items[6], m.items[3]) },
	} {
		if b, err := prove(); err == nil || b != nil {
			t.Errorf("%s: %s", name, b)
		}
	}
	if _, err := ProveGrowth(m, key, short.newest(), m.newest()); !errors.Is(err, ErrAltered) {
		t.Error(err)
	}
	big := newModel(t)
	big.add("s_1", KindOpen, `{}`)
	it := *big.add("s_1", KindDecision, `{"status":"accepted"}`, Value{Name: "arguments", Bytes: make([]byte, MaxValue)})
	big.sign()
	if _, err := ProveRecords(big, key, big.newest(), it); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	it.Values = nil
	if _, err := ProveRecords(big, key, big.newest(), it); err != nil {
		t.Error(err)
	}
}

// FuzzCheckProof: what is accepted is spelled as it would be written, and what is not
// gives nothing but an error that quotes nothing.
func FuzzCheckProof(f *testing.F) {
	of, m := proofs(f)
	for _, b := range of {
		f.Add(b)
	}
	f.Add([]byte(`{"proof":1,"key":"k","checkpoint":""}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := CheckProof(b, m.vk)
		if (err == nil) == (p == nil) || err != nil && !errors.Is(err, ErrProof) {
			t.Fatalf("%v beside %v", p, err)
		}
		if err != nil {
			return
		}
		for _, r := range p.Records {
			if it := m.items[r.Index]; p.Checkpoint == m.checkpoint() && !bytes.Equal(it.Leaf, r.Leaf) {
				t.Fatalf("record %d was never written", r.Index)
			}
		}
		var line proofLine
		if !readLine(b, &line) {
			t.Fatal("another spelling")
		}
	})
}
