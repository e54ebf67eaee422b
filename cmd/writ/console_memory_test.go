package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/console"
	"github.com/writ-project/writ/memory"
)

// TestConsoleMemory: the console reads of a memory what its operator's commands say, mounted
// or not, of now and of then, and hands out no receipt of what is still there.
func TestConsoleMemory(t *testing.T) {
	s := seed(t, plain)
	ctx := t.Context()
	say := func(label writ.Label, source, text, about string) string {
		t.Helper()
		o, err := s.keeper.Propose(ctx, memory.Context{Principal: "loopback", Session: "s_seed", Task: "s_seed", Captured: []memory.Captured{{
			Ref: "ev1", Evidence: "s_aaaaaaaaaaaaaaaa/ev1", Label: label, Source: source, Text: text, Verbatim: true, Whole: true, Between: true, Seen: uint64(s.n + 1), Value: []byte(`"` + text[strings.LastIndexByte(text, ' ')+1:] + `"`)}}},
			writ.Proposal{ToolName: memory.ToolRemember, Payload: []byte(`{"about":"` + about + `","text":"` + text + `"}`)})
		if s.n++; err != nil || o.Status == writ.Rejected {
			t.Fatal(o, err)
		}
		return o.Effects[0].ID
	}
	say(writ.User, "user:kim", "Anna's phone is 555-0100", "Anna: phone")
	before := time.Now()
	say(writ.User, "user:kim", "Anna's phone is 555-0199", "Anna: phone")
	say(writ.External, "mail/read", "Anna's phone is 555-6666", "Anna: phone")
	s.record("a quote by itself")

	mounted := &consoleMemory{files: &files{state: s.dir, store: s.st, memory: config.DefaultMemory(), keeps: s.keeper}}
	alone := &consoleMemory{files: &files{state: s.dir, store: s.st}}
	for _, m := range []*consoleMemory{mounted, alone} {
		all, err := m.Namespaces(ctx)
		if err != nil || len(all) != 1 || all[0].Name != "default" || all[0].Mounted != (m == mounted) || all[0].Mode != "hardened" {
			t.Fatalf("%+v %v", all, err)
		}
		rows, err := m.Made(ctx, "default", time.Time{}, 1, all[0].Records+1, "")
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, r := range rows {
			words = append(words, strings.TrimSpace(r.Word+" "+r.Value))
		}
		if want := []string{"established", "reported 555-6666", "established 555-0199", "replaced 555-0100"}; !slices.Equal(words, want) {
			t.Errorf("%v, want %v", words, want)
		}
		now := rows[2]
		if old := rows[3]; old.Beside != "replaced by" || !slices.Equal(old.Others, []string{now.ID}) {
			t.Errorf("%+v", old)
		}
		if now.About != "Anna: phone" || now.Quote != "Anna's phone is 555-0199" || !strings.HasPrefix(now.By, "user:kim, direct user") {
			t.Errorf("%+v", now)
		}
		then, err := m.Belief(ctx, "default", rows[3].ID, before, 0)
		if err != nil || then.Word != "established" {
			t.Errorf("as of then: %+v %v", then, err)
		}
		if later, err := m.Belief(ctx, "default", now.ID, before, 0); later != nil || err != nil {
			t.Errorf("it was not there: %+v %v", later, err)
		}
		b, err := m.Belief(ctx, "default", rows[3].ID, time.Time{}, 0)
		if err != nil || b.Word != "replaced" || len(b.Values) != 2 || len(b.Said) != 1 || !slices.ContainsFunc(b.Timeline, func(mo console.Moment) bool { return mo.Word == "established" }) {
			t.Errorf("%+v %v", b, err)
		}
		told := s.must(0, "memory", "explain", rows[3].ID)
		for _, part := range []string{b.Means, b.Because, b.Said[0].Quote, b.Changes[0]} {
			if !strings.Contains(told, part) {
				t.Errorf("writ memory explain does not say %q:\n%s", part, told)
			}
		}
		if found, _, err := m.Found(ctx, "default", time.Time{}, "phone of Anna"); err != nil || len(found) != 3 || found[0].Value != "555-0199" {
			t.Errorf("%+v %v", found, err)
		}
		if _, err := m.Receipt(ctx, "default", rows[0].ID); err == nil {
			t.Error("a receipt of no erasure")
		}
		// The command that the page names does that, and nothing else.
		command := strings.Fields(b.Commands[0].Line)
		if out := s.must(0, slices.DeleteFunc(command[1:], func(w string) bool { return w == "--state" || strings.Trim(w, "'") == s.dir })...); !strings.Contains(out, rows[3].ID) {
			t.Errorf("%s: %s", b.Commands[0].Line, out)
		}
	}

	// Of two contested words each is told which it is; of a quote that bears no claim out, what
	// remember answered of it and why that is not what the claim is worth.
	say(writ.User, "user:kim", "Bob's phone is 555-0300", "Bob: phone")
	say(writ.System, "crm/get", "Bob's phone is 555-0400", "Bob: phone")
	say(writ.External, "mail/read", "Call 555-0500", "Cora: phone")
	rows, err := mounted.Made(ctx, "default", time.Time{}, 1, uint64(s.n+2), "")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"its quote obs_%d is reported by itself, and does not answer phone: one sentence", "it is the later of two words that say otherwise, and of the lower level", "a later word of a lower level says otherwise"} {
		b, err := mounted.Belief(ctx, "default", rows[i].ID, time.Time{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if want = strings.ReplaceAll(want, "%d", strings.TrimPrefix(b.ID, "prop_")); !strings.Contains(b.Because+b.Note, want) || i > 0 && (b.Word != "contested" || b.Beside != "disputed by" || len(b.Others) != 1) {
			t.Errorf("%d: %+v, and not %s", i, b, want)
		}
	}

	// A dispute stays one in the timeline when who disputed is erased, and not a word of what he said.
	bob, disputer := rows[2].ID, rows[1].ID
	disputed := time.Now()
	s.must(0, "memory", "erase", "--proposition", disputer, "--reason", "request", "--yes")
	told, err := mounted.Belief(ctx, "default", bob, time.Time{}, 0)
	if err != nil || told.Word != "established" {
		t.Fatalf("%+v %v", told, err)
	}
	var stood []string
	for _, mo := range told.Timeline {
		if mo.Word != "" && strings.HasPrefix(mo.What, bob) {
			stood = append(stood, mo.Word)
		}
		if strings.Contains(mo.What+mo.Because+mo.Quote, "0400") || mo.Word == "contested" && strings.HasPrefix(mo.What, bob) && !strings.HasSuffix(mo.Because, "; disputed by "+disputer+", erased since") {
			t.Errorf("%+v", mo)
		}
	}
	if want := []string{"established", "contested", "established"}; !slices.Equal(stood, want) {
		t.Errorf("it stood as %v, want %v", stood, want)
	}
	if then, err := mounted.Belief(ctx, "default", bob, disputed, 0); err != nil || then.Word != "contested" || len(then.Values) != 1 || then.Values[0].Quote != "" || !strings.Contains(then.Values[0].Note, "erased since") {
		t.Errorf("as of then: %+v %v", then, err)
	}

	s.must(0, "memory", "source", "add", "mail/read", "--class", "web")
	s.must(0, "memory", "erase", "--proposition", "prop_2", "--reason", "request", "--yes")
	all, err := mounted.Namespaces(ctx)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := mounted.Made(ctx, "default", time.Time{}, 1, all[0].Records+1, "erasure")
	if err != nil || len(gone) != 2 {
		t.Fatalf("%+v %v", gone, err)
	}
	b, err := mounted.Belief(ctx, "default", gone[0].ID, time.Time{}, 0)
	if err != nil || !slices.Contains(b.Facts, console.Fact{Name: "Reason", Text: "request"}) || !strings.Contains(b.Means, "the memory's own log") || !strings.Contains(b.Means, "not reached: `writ audit redact`") ||
		!strings.HasSuffix(b.Commands[0].Line, " s_aaaaaaaaaaaaaaaa s_seed --preview") {
		t.Errorf("%+v %v", b, err)
	}
	receipt, err := mounted.Receipt(ctx, "default", gone[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if again := s.must(0, "memory", "receipt", "issue", gone[0].ID); again != string(receipt) {
		t.Errorf("another receipt: %s", again)
	}
	for name, want := range map[string]bool{"default": true, "other": false, "../default": false, "": false} {
		if has, err := alone.Has(ctx, name); has != want || err != nil {
			t.Errorf("%q: %t %v", name, has, err)
		}
	}
	if src, err := mounted.Sources(ctx, "default"); err != nil || len(src) != 1 || src[0].Class != "web" {
		t.Errorf("%+v %v", src, err)
	}
	b, err = mounted.Belief(ctx, "default", "prop_2", time.Time{}, 0)
	if err != nil || b.Word != "erased" || b.Quote != "" || len(b.Commands) != 0 || len(b.Said) != 1 || !b.Said[0].Erased {
		t.Errorf("what was erased: %+v %v", b, err)
	}
	// Its timeline has what happened at its own time, and nothing of its words.
	var story []string
	for _, mo := range b.Timeline {
		if strings.Contains(mo.What, "_2") {
			story = append(story, strings.TrimSpace(map[bool]string{true: "then", false: "later"}[mo.At.Before(before)]+" "+mo.What+" "+mo.Word))
		}
		if strings.Contains(mo.What+mo.Quote, "0100") {
			t.Errorf("it tells the words: %+v", mo)
		}
	}
	if want := []string{"then obs_2 was said", "then prop_2 was put by the model", "then obs_2 was given for prop_2", "then prop_2 stood as established", "later prop_2 stood as replaced",
		"later prop_2 was erased", "later obs_2 counts no more for prop_2", "later obs_2 was erased", "later prop_2 stood as erased"}; !slices.Equal(story, want) {
		t.Errorf("it tells %q, want %q", story, want)
	}
	if then, err := mounted.Belief(ctx, "default", "prop_2", before, 0); err != nil || then.Word != "established" || then.Quote != "" || then.Value != "" {
		t.Errorf("as of then: %+v %v", then, err)
	}
}
