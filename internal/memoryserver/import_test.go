package memoryserver

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

var update = flag.Bool("update", false, "write what the cases come to")

// told is an import as the case files write it.
func told(in *Import) string {
	var b strings.Builder
	for _, f := range in.Faults {
		fmt.Fprintf(&b, "fault %d: %s\n", f.Line, f.Message)
	}
	for _, i := range in.Items {
		fmt.Fprintf(&b, "%s %q\n", i.Ref, i.Raw)
	}
	if in.Skipped > 0 {
		fmt.Fprintf(&b, "skipped %d\n", in.Skipped)
	}
	return b.String()
}

// TestImportCases reads the files of testdata/import. The first word of a case
// is its format, in is the file and want what it comes to; -update writes it.
func TestImportCases(t *testing.T) {
	files, err := filepath.Glob("testdata/import/*.txtar")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			format, _, _ := strings.Cut(string(a.Comment), "\n")
			for i := 0; i+1 < len(a.Files); i += 2 {
				in, want := &a.Files[i], &a.Files[i+1]
				got := told(ReadImport(format, "f", in.Data))
				if *update {
					want.Data = []byte(got)
				} else if got != string(want.Data) {
					t.Errorf("%s comes to\n%swant\n%s", in.Name, got, want.Data)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// keepersOf opens a namespace of a store.
func keepersOf(t *testing.T, st *mapstore.Store, namespace string) *Keeper {
	t.Helper()
	k, err := Open(t.Context(), Options{Store: st, Namespace: namespace, Policy: policy(t), Mode: memory.Hardened, Clock: ticking()})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func export(t *testing.T, k *Keeper) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := k.Read(t.Context(), func(s *memory.State, _ time.Time) {
		if _, err := Export(&b, s); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestImportExport: what is exported can be imported, once; it is worth what an
// import is; and an erased text comes back by no way (M03).
func TestImportExport(t *testing.T) {
	signer, _ := storetest.Key()
	st := mapstore.New(signer)
	k := keepersOf(t, st, "one")
	for i, text := range []string{"first", "second \u202e third", "gone for good"} {
		c, p := said("agent", fmt.Sprintf("o%d", i), text)
		if o, err := k.Propose(t.Context(), c, p); err != nil || o.Status == writ.Rejected {
			t.Fatal(o, err)
		}
	}
	before := export(t, k)
	if d, err := k.Operate(t.Context(), "operator:1", memory.CommandErase, []byte(`{"observation_ids":["obs_4"],"reason":"request"}`)); err != nil || d.Outcome.Status == writ.Rejected {
		t.Fatal(d.Outcome, err)
	}
	b := export(t, k)
	if !bytes.Equal(b, export(t, keepersOf(t, st, "one"))) {
		t.Error("two exports of one state differ")
	}
	if bytes.Contains(b, []byte("gone for good")) {
		t.Error("the export holds what was erased")
	}
	in := ReadImport(FormatWrit, "f", b)
	if len(in.Items) != 2 || in.Skipped != 1 || in.Faults != nil {
		t.Fatal(told(in))
	}
	other := keepersOf(t, st, "two")
	record := func(k *Keeper, in *Import) (words []string) {
		for i := range in.Items {
			c, p := in.Items[i].Proposal("operator:1", "import/writ")
			o, err := k.Propose(t.Context(), c, p)
			if err != nil {
				t.Fatal(err)
			}
			if o.Status == writ.Rejected {
				words = append(words, string(o.Rejection.Reason))
			} else {
				words = append(words, o.Effects[len(o.Effects)-1].Effect)
			}
		}
		return words
	}
	if got := fmt.Sprint(record(other, in)); got != "[observation.ingested observation.ingested]" {
		t.Fatal(got)
	}
	if got := fmt.Sprint(record(other, in)); got != "[observation.duplicate observation.duplicate]" {
		t.Error("again:", got)
	}
	if err := other.Read(t.Context(), func(s *memory.State, _ time.Time) {
		rec, ok := (&memory.Reader{State: s}).Get("obs_2")
		if o := rec.Observation; !ok || o.Level != 1 || o.Class != memory.ClassImport || o.SourceRef.Text != "one/obs_2" || o.Evidence != "" {
			t.Errorf("%+v", rec.Observation)
		}
	}); err != nil {
		t.Fatal(err)
	}
	// An old export still has the erased text; erased there, it stays erased.
	old := ReadImport(FormatWrit, "f", before)
	record(other, old)
	if d, err := other.Operate(t.Context(), "operator:1", memory.CommandErase, []byte(`{"source":"import/writ","reason":"request"}`)); err != nil || d.Outcome.Status == writ.Rejected {
		t.Fatal(d.Outcome, err)
	}
	for _, w := range record(other, old) {
		if w != string(writ.ObservationConflict) {
			t.Errorf("an erased text came back: %s", w)
		}
	}
	// A changed row, a missing one, one more: the file is refused as a whole.
	for name, change := range map[string]func([]byte) []byte{
		"changed":  func(b []byte) []byte { return bytes.Replace(b, []byte("first"), []byte("worst"), 1) },
		"cut":      func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] },
		"more":     func(b []byte) []byte { return append(bytes.Clone(b), `{"table":"x","row":{}}`+"\n"...) },
		"head":     func(b []byte) []byte { return bytes.Replace(b, []byte(`"v":1`), []byte(`"v":2`), 1) },
		"no head":  func(b []byte) []byte { return b[bytes.IndexByte(b, '\n')+1:] },
		"spelling": func(b []byte) []byte { return bytes.Replace(b, []byte(`"v":1}`), []byte(`"v": 1}`), 1) },
	} {
		if in := ReadImport(FormatWrit, "f", change(b)); len(in.Faults) == 0 || len(in.Items) > 0 {
			t.Errorf("%s: read all the same", name)
		}
	}
}

// FuzzImport: whatever a file holds, what comes of it can be recorded or is a
// fault of a line of it; and no line of notes is lost.
func FuzzImport(f *testing.F) {
	for i := range ImportFormats {
		f.Add(i, []byte("{\"type\":\"entity\",\"name\":\"a\",\"entityType\":\"b\",\"observations\":[\"c\"]}\n"))
		f.Add(i, []byte("---\na: b\n---\n# H\n\n- one\n  two\n```x\n\ny\n```\n\nend"))
		f.Add(i, []byte(`{"head":1,"kind":"memory.export","mode":"local","namespace":"a","policy":"","rows":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","tables":{},"v":1}`+"\n"))
	}
	f.Fuzz(func(t *testing.T, format int, b []byte) {
		if format < 0 || format >= len(ImportFormats) {
			return
		}
		in := ReadImport(ImportFormats[format], "f\u202e g", b)
		lines := bytes.Count(b, []byte("\n")) + 1
		for _, x := range in.Faults {
			if x.Line < 1 || x.Line > lines {
				t.Errorf("a fault in line %d of %d", x.Line, lines)
			}
		}
		if len(in.Faults) > 0 && len(in.Items) > 0 {
			t.Error("items of a faulty file")
		}
		var kept []string
		for _, i := range in.Items {
			if i.Raw == "" || len(i.Raw) > maxItem || !utf8.ValidString(i.Raw) || strings.ContainsRune(i.Raw, 0) || i.Ref == "" {
				t.Errorf("%+v", i)
			}
			for _, r := range i.Ref {
				if r <= ' ' || r >= 0x7f {
					t.Errorf("ref %q", i.Ref)
				}
			}
			_, p := i.Proposal("operator:1", "s")
			if cite, ok := memory.Cites(p); !ok || cite.Raw != i.Raw || cite.Ref != i.Ref {
				t.Errorf("%s does not hold %+v", p.Payload, i)
			}
			kept = append(kept, notBlank(i.Raw)...)
		}
		if ImportFormats[format] == FormatMarkdown && len(in.Faults) == 0 {
			if want := notBlank(string(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))); strings.Join(kept, "\n") != strings.Join(want, "\n") {
				t.Errorf("%q\nbecomes %q", want, kept)
			}
		}
	})
}

func notBlank(s string) (out []string) {
	for l := range strings.Lines(s) {
		if l = strings.TrimRight(l, "\r\n"); strings.TrimSpace(l) != "" {
			out = append(out, l)
		}
	}
	return out
}
