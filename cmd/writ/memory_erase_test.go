package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/memory"
)

// seeded is a state directory whose memory was worked with by a gateway that
// is still running: its keeper stays open.
type seeded struct {
	t      *testing.T
	dir    string
	st     *sqlite.Store
	keeper *memoryserver.Keeper
	n      int
}

func seed(t *testing.T, store func(audit.Store) audit.Store) *seeded {
	t.Helper()
	s := &seeded{t: t, dir: ownState(t)}
	if err := os.Chmod(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.st, err = openStore(t.Context(), s.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.st.Close() })
	s.keeper, err = memoryserver.Open(t.Context(), memoryserver.Options{Store: store(s.st), Namespace: "default", Policy: memory.Builtin(), Mode: memory.Hardened})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func plain(st audit.Store) audit.Store { return st }

// propose proposes as an agent does; what it records stands in something Writ
// saw.
func (s *seeded) propose(tool, payload string) memory.Outcome {
	s.t.Helper()
	o, err := s.keeper.Propose(s.t.Context(), memory.Context{Principal: "loopback", Session: "s_seed", Task: "s_seed",
		Captured: []memory.Captured{{Ref: "ev1", Evidence: "s_seed/ev1", Label: writ.System, Source: "toy/read", Verbatim: true}}},
		writ.Proposal{ToolName: tool, Payload: []byte(payload)})
	if err != nil {
		s.t.Fatal(err)
	}
	if o.Status == writ.Rejected {
		s.t.Fatalf("%s: %+v", tool, o.Rejection)
	}
	return o
}

// record records one observation and returns its id.
func (s *seeded) record(text string) string {
	s.n++
	return s.propose(memory.ToolRecordObservation, fmt.Sprintf(`{"observation_id":"o%d","raw_payload":%q}`, s.n, text)).Effects[0].ID
}

// writ runs the program on the state directory and returns its exit code and
// what it printed.
func (s *seeded) writ(args ...string) (int, string, string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	code := run(context.Background(), append(args, "--state", s.dir), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// must is writ that must exit with a code.
func (s *seeded) must(code int, args ...string) string {
	s.t.Helper()
	got, out, errs := s.writ(args...)
	if got != code {
		s.t.Fatalf("writ %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, out, errs)
	}
	return out + errs
}

// holding are the files of the state directory that hold a text.
func (s *seeded) holding(text string) (files []string) {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, []byte(text)) {
			files = append(files, d.Name())
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

// TestMemoryEraseLeavesNoCopy: after an erasure no file of the state directory
// holds the text: not the log, not its write-ahead log, not a free page, beside a gateway that goes on (M09).
func TestMemoryEraseLeavesNoCopy(t *testing.T) {
	s := seed(t, plain)
	const secret = "quetzalcoatl-77310-planted"
	for i := range 40 { // so that the secret does not have a page of its own
		s.record(fmt.Sprintf("neighbour %d of nothing in particular", i))
	}
	obs := s.record("The password of the north vault is " + secret + ". " + strings.Repeat("It fills several pages. ", 400))
	named := func(name string) string {
		return s.propose(memory.ToolEntity, fmt.Sprintf(`{"name":%q,"entity_type":"thing","observation_ids":[%q]}`, name, obs)).Effects[0].ID
	}
	ent, vault := named("vault of "+secret), named("north vault")
	claim := func(value, obs string) string {
		o := s.propose(memory.ToolPropose, fmt.Sprintf(`{"text":"It is %[1]s.","observation_ids":[%[2]q],"about":[%[3]q],"structured_form":{"subject":%[3]q,"predicate":"password","object":{"literal":%[1]q}}}`, value, obs, vault))
		i := slices.IndexFunc(o.Effects, func(e memory.Effect) bool { return e.Effect == "proposition.created" })
		return o.Effects[i].ID
	}
	prop := claim(secret, obs)
	other := s.record("The password of the north vault is swordfish-42, somebody added.")
	claim("swordfish-42", other)
	s.propose(memory.ToolAttachContra, fmt.Sprintf(`{"proposition_id":%q,"observation_ids":[%q]}`, prop, other))
	s.record("and a neighbour after it")
	if out := s.must(cli.ExitOK, "memory", "search", "password", "--all"); !strings.Contains(out, secret) {
		t.Fatalf("not found before: %s", out)
	}
	if len(s.holding(secret)) == 0 {
		t.Fatal("the secret is nowhere before it is erased: the test sees nothing")
	}
	s.must(cli.ExitOK, "memory", "erase", "--observation", obs, "--reason", "user-request", "--yes")
	if files := s.holding(secret); files != nil {
		t.Errorf("the secret is still in %v", files)
	}
	s.must(cli.ExitOK, "memory", "verify")
	// The gateway that was there all along does not bring it back.
	s.record("and another one")
	if out := s.must(cli.ExitOK, "memory", "search", "password", "--all"); strings.Contains(out, secret) {
		t.Error(out)
	}
	if files := s.holding(secret); files != nil {
		t.Errorf("the secret is again in %v", files)
	}
	for _, id := range []string{obs, ent, vault, prop} {
		if out := s.must(cli.ExitOK, "memory", "get", id, "--json"); strings.Contains(out, secret) {
			t.Errorf("%s: %s", id, out)
		}
	}
}

// failing is a store whose erasures fail, as when a process is killed between
// the event and the end of it.
type failing struct{ audit.Store }

func (failing) Erase(context.Context, string, ...uint64) error { return errors.New("killed") }

// TestMemoryEraseCutOff: an erasure that is on record and was cut off is said,
// what would be its receipt is not true, and the receipt that is issued ends it.
func TestMemoryEraseCutOff(t *testing.T) {
	s := seed(t, func(st audit.Store) audit.Store { return failing{st} })
	const secret = "huitzilopochtli-4711"
	obs := s.record("It is " + secret)
	if _, err := s.keeper.Operate(t.Context(), "operator:1", memory.CommandErase, []byte(fmt.Sprintf(`{"observation_ids":[%q],"reason":"request"}`, obs))); err == nil {
		t.Fatal("an erasure that failed is told as done")
	}
	if out := s.must(cli.ExitData, "memory", "verify"); !strings.Contains(out, "dec_3") || !strings.Contains(out, "writ memory receipt issue") {
		t.Error(out)
	}
	file := filepath.Join(t.TempDir(), "receipt.txt")
	write := func(msg []byte) {
		if err := os.WriteFile(file, msg, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := (&flags{state: s.dir}).open(t.Context(), toRead)
	if err != nil {
		t.Fatal(err)
	}
	untrue, err := r.receipt(t.Context(), 3)
	if r.close(); err != nil {
		t.Fatal(err)
	}
	write(untrue)
	if out := s.must(cli.ExitData, "memory", "receipt", "verify", file); !strings.Contains(out, "the text of record 2 is still there") {
		t.Error(out)
	}
	write([]byte(s.must(cli.ExitOK, "memory", "receipt", "issue", "dec_3")))
	s.must(cli.ExitOK, "memory", "receipt", "verify", file)
	s.must(cli.ExitOK, "memory", "verify")
	s.must(cli.ExitOK, "audit", "verify")
	if files := s.holding(secret); files != nil {
		t.Errorf("the secret is still in %v", files)
	}
}

// TestMemoryErasePerson: everything by way of one person's sessions goes, and
// nothing of another's.
func TestMemoryErasePerson(t *testing.T) {
	s := seed(t, plain)
	s.record("what one said")
	_, err := s.keeper.Propose(t.Context(), memory.Context{Principal: "other", Session: "s_other", Task: "s_other",
		Captured: []memory.Captured{{Evidence: "s_other/ev1", Label: writ.User, Source: "user:other", Verbatim: true}}},
		writ.Proposal{ToolName: memory.ToolRecordObservation, Payload: []byte(`{"observation_id":"o1","raw_payload":"what the other said"}`)})
	if err != nil {
		t.Fatal(err)
	}
	out := s.must(cli.ExitOK, "memory", "erase", "--principal", "other", "--reason", "request", "--yes")
	if !strings.Contains(out, `"evidence":["s_other/ev1"]`) || !strings.Contains(out, `"sessions":["s_other"]`) {
		t.Error(out)
	}
	if len(s.holding("what the other said")) > 0 || len(s.holding("what one said")) == 0 {
		t.Error("the wrong text is gone")
	}
}

// TestMemoryEraseByWhatIsShown: what search shows is a name that erase takes, a
// claim is the observations that bear it out, and a session has the name it is kept
// under.
func TestMemoryEraseByWhatIsShown(t *testing.T) {
	s := seed(t, plain)
	obs := s.record(`{"name":"Anna","phone":"555-0100"}`)
	ent := s.propose(memory.ToolEntity, `{"name":"Anna","entity_type":"thing","observation_ids":["`+obs+`"]}`).Effects[0].ID
	s.propose(memory.ToolPropose, `{"text":"x","structured_form":{"subject":"`+ent+`","predicate":"phone","object":{"literal":"555-0100"}},"observation_ids":["`+obs+`"],"about":["`+ent+`"]}`)
	found := s.must(0, "memory", "search", "Anna")
	prop := regexp.MustCompile(`prop_[0-9]+`).FindString(found)
	if prop == "" {
		t.Fatalf("no claim is shown: %s", found)
	}
	if out := s.must(0, "memory", "erase", "--proposition", prop, "--preview"); !strings.Contains(out, prop+" means "+obs) {
		t.Errorf("it is not said what goes: %s", out)
	}
	s.must(cli.ExitData, "memory", "erase", "--proposition", "prop_999", "--preview")
	if out := s.must(cli.ExitUsage, "memory", "erase", "--observation", prop, "--preview"); !strings.Contains(out, "--proposition "+prop) {
		t.Errorf("a claim for an observation: %s", out)
	}
	s.must(cli.ExitUsage, "memory", "erase", "--proposition", obs, "--preview")
	s.must(0, "memory", "erase", "--proposition", prop, "--reason", "request", "--yes")
	if out := s.must(0, "memory", "search", "Anna", "--all"); strings.Contains(out, "555-0100") {
		t.Errorf("it is still there: %s", out)
	}

	s.must(0, "session", "new", "monday")
	id := regexp.MustCompile(`s_[a-z0-9]+`).FindString(s.must(0, "session", "list"))
	o, err := s.keeper.Propose(t.Context(), memory.Context{Principal: "loopback", Session: id, Task: id},
		writ.Proposal{ToolName: memory.ToolRemember, Payload: []byte(`{"text":"the tulips are red"}`)})
	if err != nil || o.Kept == nil {
		t.Fatal(err, o.Rejection)
	}
	s.must(cli.ExitData, "memory", "erase", "--session", "tuesday", "--preview")
	if out := s.must(0, "memory", "erase", "--session", "monday", "--preview"); !strings.Contains(out, o.Kept.ID) {
		t.Errorf("what was noted on monday would not go: %s", out)
	}
}

// TestMemoryRulingIsSeen: what an operator refuted is no answer, what he upheld is
// established, and a search shows as many as it was asked for, the established first.
func TestMemoryRulingIsSeen(t *testing.T) {
	s := seed(t, plain)
	note := func(text, about string) string {
		o, err := s.keeper.Propose(t.Context(), memory.Context{Principal: "loopback", Session: "s_seed", Task: "s_seed"},
			writ.Proposal{ToolName: memory.ToolRemember, Payload: []byte(fmt.Sprintf(`{"text":%q,"about":%q}`, text, about))})
		if err != nil || o.Kept == nil {
			t.Fatal(err, o.Rejection)
		}
		return o.Kept.ID
	}
	up, down := note("Tom's desk is 12", "Tom: desk"), note("Tom's bike is red", "Tom: bike")
	for i := range 8 {
		note(fmt.Sprintf("Tom was seen at %d", i), "Tom")
	}
	s.must(0, "memory", "resolve", up, "--uphold")
	s.must(0, "memory", "resolve", down, "--refute")
	out := s.must(0, "memory", "search", "Tom", "--limit", "3")
	if !strings.HasPrefix(out, up+"  established") || !strings.Contains(out, "upheld by an operator") {
		t.Errorf("what was upheld is not first: %s", out)
	}
	if out := s.must(0, "memory", "explain", up); !strings.Contains(out, "because an operator upheld it") {
		t.Errorf("who upheld it is not said: %s", out)
	}
	if n := len(regexp.MustCompile(`(?m)^(obs|prop)_`).FindAllString(out, -1)); n != 3 {
		t.Errorf("%d are shown of 3: %s", n, out)
	}
	if out := s.must(0, "memory", "search", "Tom", "bike", "--limit", "50"); strings.Contains(out, "bike is red") {
		t.Errorf("what was refuted is told: %s", out)
	}
	if out := s.must(0, "memory", "search", "Tom", "bike", "--all"); !strings.Contains(out, "an operator refuted "+down) {
		t.Errorf("what was refuted is not marked: %s", out)
	}
}

// TestMemoryReceiptStrict: a receipt is read as it was written and in no other
// form.
func TestMemoryReceiptStrict(t *testing.T) {
	s := seed(t, plain)
	obs := s.record("text")
	receipt := s.must(cli.ExitOK, "memory", "erase", "--observation", obs, "--reason", "request", "--yes")
	_, receipt, _ = strings.Cut(receipt, "observations "+obs+"\n")
	receipt = receipt[strings.Index(receipt, "writ erasure receipt"):]
	text, _, _ := strings.Cut(receipt, "\n\n")
	text += "\n"
	if _, err := memoryserver.ParseReceipt(text); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]string{
		"no head":      strings.TrimPrefix(text, "writ erasure receipt\n"),
		"white space":  strings.Replace(text, `,"v":1`, `, "v":1`, 1),
		"version":      strings.Replace(text, `"v":1`, `"v":2`, 1),
		"more":         strings.Replace(text, `"v":1`, `"v":1,"w":1`, 1),
		"twice":        strings.Replace(text, `"v":1`, `"v":1,"v":1`, 1),
		"another kind": strings.Replace(text, "memory.erasure", "memory.export", 1),
		"trailing":     text + "x",
		"no digest":    regexp.MustCompile(`"records":\[.*?\]`).ReplaceAllString(text, `"records":null`),
	} {
		if _, err := memoryserver.ParseReceipt(other); err == nil {
			t.Errorf("%s: read all the same", name)
		}
	}
}

func FuzzMemoryReceipt(f *testing.F) {
	f.Add("writ erasure receipt\n{\"v\":1}\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := memoryserver.ParseReceipt(text)
		if err != nil {
			return
		}
		if again, err := r.Text(); err != nil || again != text {
			t.Errorf("%q is written as %q", text, again)
		}
	})
}
