package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// partOf is a part of the model's log of now with the sessions that are named.
func (m *model) partOf(key string, of ...string) PartOf {
	p := PartOf{Key: key, Checkpoint: m.newest(), Blobs: m.blobs}
	for _, it := range m.items {
		if slices.Contains(of, it.Session) {
			p.Items = append(p.Items, it)
		}
	}
	return p
}

func writtenPart(t *testing.T, m *model, p PartOf) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WritePart(&b, m, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func verifiedPart(m *model, b []byte) (*Part, *Report, error) {
	p, err := ReadPart(b)
	if err != nil {
		return nil, nil, err
	}
	r, err := VerifyPart(context.Background(), p, VerifyOptions{Verifier: m.vk})
	if err == nil && r.Problem != nil {
		err = r.Problem
	}
	return p, r, err
}

// TestPart: any of the sessions of logs of any size verify without the rest of it, and
// what is read is what was written, to the byte.
func TestPart(t *testing.T) {
	for each := 1; each < 24; each++ {
		m, key := provable(t, 3, each)
		m.blobs = []Blob{{Sum([]byte("policy")), []byte("policy")}}
		for set := range 8 {
			var of []string
			for s := range 3 {
				if set>>s&1 == 1 {
					of = append(of, fmt.Sprintf("s_%d", s))
				}
			}
			want := m.partOf(key, of...)
			want.Older = append(want.Older, m.notes...)
			b := writtenPart(t, m, want)
			p, r, err := verifiedPart(m, b)
			if err != nil || r.Records != int64(each*len(of)) || r.Sessions != int64(len(of)) || r.Size != m.size || r.Root != m.root || r.Erased != 0 {
				t.Fatalf("%d records of each of %q: %v %+v", each, of, err, r)
			}
			same := slices.EqualFunc(p.items, want.Items, func(a, b Item) bool {
				return a.Index == b.Index && bytes.Equal(a.Leaf, b.Leaf) && reflect.DeepEqual(a.Values, b.Values)
			})
			if newest, older, err := p.Checkpoints(m.vk); !same || err != nil || newest != m.checkpoint() || len(older) != len(m.notes) {
				t.Fatalf("%d records of each of %q are others, or %v", each, of, err)
			}
			if got, err := p.Blob(t.Context(), m.blobs[0].Name); err != nil || string(got) != "policy" {
				t.Fatal(err)
			}
			line, _, _ := bytes.Cut(b, []byte{'\n'})
			if msg, c, err := PartCheckpoint(append(line, '\n'), m.vk); err != nil || c != m.checkpoint() || !bytes.Equal(msg, m.newest()) || !IsPart(b) {
				t.Fatal(err)
			}
		}
	}
}

// TestPartOfALongerLog: the log may go on meanwhile: what counts is the checkpoint.
func TestPartOfALongerLog(t *testing.T) {
	m, key := provable(t, 3, 7)
	want := m.partOf(key, "s_1")
	before := writtenPart(t, m, want)
	for range 50 {
		m.add("s_1", KindEvent, `{}`)
		m.sign()
	}
	if after := writtenPart(t, m, want); !bytes.Equal(before, after) {
		t.Error("the same part of a longer log is another")
	}
	want.Items = append(want.Items, m.items[len(m.items)-1])
	if err := WritePart(&bytes.Buffer{}, m, want); !errors.Is(err, ErrAltered) {
		t.Errorf("a record behind the checkpoint: %v", err)
	}
	if IsPart(bundled(t, m, key)) {
		t.Error("a whole log is a part")
	}
	if _, err := readBundle(before); !errors.Is(err, ErrBundle) {
		t.Errorf("a part is read as a whole log: %v", err)
	}
}

// redigested is a part of other lines, by one who makes its digest anew.
func redigested(lines [][]byte) []byte {
	body := bytes.Join(lines, nil)
	sum := sha256.Sum256(body)
	end, _ := json.Marshal(bundleEnd{hex.EncodeToString(sum[:])})
	return append(append(body, end...), '\n')
}

// TestPartForged: without the log's key nobody makes a part say what the log does not
// (L01, L02): not by any byte, and not by lines that are those of the log elsewhere.
func TestPartForged(t *testing.T) {
	m, key := provable(t, 3, 6)
	want := m.partOf(key, "s_0", "s_2")
	want.Older = m.notes[:1]
	whole := writtenPart(t, m, want)
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1
		if _, err := ReadPart(changed); !errors.Is(err, ErrBundle) {
			t.Fatalf("byte %d of %q is another: %v", i, whole[max(0, i-20):i+1], err)
		}
		if _, err := ReadPart(whole[:i]); !errors.Is(err, ErrBundle) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	lines := bytes.SplitAfter(whole, []byte{'\n'})
	lines = lines[:len(lines)-2] // without the digest
	if _, _, err := verifiedPart(m, redigested(lines)); err != nil {
		t.Fatal(err)
	}
	body := bytes.Join(lines, nil)
	for n := range 2 * len(body) {
		i := n / 2
		forged := bytes.Clone(body)
		if forged[i] ^= 1; n%2 > 0 {
			forged[i] = body[i] + 1 // the next letter of base64 may say the same
		}
		if forged[i] == '\n' || body[i] == '\n' {
			continue
		}
		if p, _, err := verifiedPart(m, redigested([][]byte{forged})); err == nil && p.Key == key {
			t.Fatalf("byte %d of %q is another, and it verifies", i, body[max(0, i-20):i+1])
		}
	}

	with := func(head func(*partHead), change func(records [][]byte, nodes *partNodes) [][]byte) []byte {
		var h partHead
		var nodes partNodes
		last := len(lines) - 1
		if !readLine(lines[0], &h) || !readLine(lines[last], &nodes) {
			t.Fatal("it cannot be read")
		}
		records := change(slices.Clone(lines[1:last]), &nodes)
		h.Records = len(records)
		if head != nil {
			head(&h)
		}
		first, _ := json.Marshal(h)
		end, _ := json.Marshal(nodes)
		return redigested(slices.Concat([][]byte{append(first, '\n')}, records, [][]byte{append(end, '\n')}))
	}
	asItIs := func(r [][]byte, _ *partNodes) [][]byte { return r }
	if _, _, err := verifiedPart(m, with(nil, asItIs)); err != nil {
		t.Fatal(err)
	}
	otherKey := newModel(t)
	otherKey.sk, otherKey.vk = testKey(t, "writ.test/log", 2)
	otherKey.fill(3, 6)
	fork := newModel(t)
	fork.fill(3, 7)
	for name, forged := range map[string][]byte{
		"a record is left out":        with(nil, func(r [][]byte, _ *partNodes) [][]byte { return slices.Delete(r, 3, 4) }),
		"a session is cut to nothing": with(nil, func(r [][]byte, _ *partNodes) [][]byte { return r[:1] }),
		"a record stands twice":       with(nil, func(r [][]byte, _ *partNodes) [][]byte { return slices.Insert(r, 3, r[3]) }),
		"two have changed places":     with(nil, func(r [][]byte, _ *partNodes) [][]byte { r[3], r[4] = r[4], r[3]; return r }),
		"a record of another place": with(nil, func(r [][]byte, _ *partNodes) [][]byte {
			var a, b partRecord
			if !readLine(r[3], &a) || !readLine(r[4], &b) {
				t.Fatal("it cannot be read")
			}
			a.bundleRecord, b.bundleRecord = b.bundleRecord, a.bundleRecord
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			r[3], r[4] = append(x, '\n'), append(y, '\n')
			return r
		}),
		"a record for the node it stands in": with(nil, func(r [][]byte, n *partNodes) [][]byte {
			n.Nodes = slices.Insert(n.Nodes, 0, Hash{})
			return r
		}),
		"a node too many":                                      with(nil, func(r [][]byte, n *partNodes) [][]byte { n.Nodes = append(n.Nodes, Hash{}); return r }),
		"a node is missing":                                    with(nil, func(r [][]byte, n *partNodes) [][]byte { n.Nodes = n.Nodes[1:]; return r }),
		"a checkpoint of another key":                          with(func(h *partHead) { h.Checkpoint = string(otherKey.newest()) }, asItIs),
		"an older one of another key":                          with(func(h *partHead) { h.Older[0].Checkpoint = string(otherKey.notes[0]) }, asItIs),
		"an older checkpoint":                                  with(func(h *partHead) { h.Checkpoint = string(m.notes[0]) }, asItIs),
		"an older one of a longer log that the key signed too": with(func(h *partHead) { h.Older[0].Checkpoint = string(fork.newest()) }, asItIs),
	} {
		if _, _, err := verifiedPart(m, forged); err == nil {
			t.Errorf("%s, and it verifies", name)
		}
	}
}

// FuzzReadPart: what is read as a part is the one spelling of it, and none that is not the
// log's verifies.
func FuzzReadPart(f *testing.F) {
	m, key := provable(f, 3, 6)
	want := m.partOf(key, "s_0")
	want.Older = m.notes[:1]
	var b bytes.Buffer
	if err := WritePart(&b, m, want); err != nil {
		f.Fatal(err)
	}
	lines := bytes.SplitAfter(b.Bytes(), []byte{'\n'})
	f.Add(bytes.Join(lines[:len(lines)-2], nil))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, r, err := verifiedPart(m, redigested([][]byte{body}))
		if err != nil {
			return
		}
		if r.Size > m.size || p.Key == key && len(p.items) > 0 && !bytes.Equal(p.items[0].Leaf, m.items[p.items[0].Index].Leaf) {
			t.Errorf("%q verifies", body)
		}
	})
}
