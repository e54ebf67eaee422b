package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/memoryserver"
)

// TestMemoryImportUnpaced: the cap on what one source says in a minute holds
// agents to it, and no operator who imports a file. No wait is there to be
// waited for: a refusal would be told.
func TestMemoryImportUnpaced(t *testing.T) {
	s := seed(t, plain)
	s.record("so that there is a namespace")
	var notes strings.Builder
	for i := range 500 {
		fmt.Fprintf(&notes, "note %d\n\n", i)
	}
	in := memoryserver.ReadImport(memoryserver.FormatMarkdown, "notes.md", []byte(notes.String()))
	r, err := (&flags{state: s.dir}).open(t.Context(), toWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for _, want := range []importReport{{DryRun: true, Recorded: 500}, {Recorded: 500}, {Known: 500}, {DryRun: true, Known: 500}} {
		rep := importReport{Source: "import/markdown", DryRun: want.DryRun}
		if err := r.record(t.Context(), in, &rep); err != nil {
			t.Fatal(err)
		}
		if rep.Recorded != want.Recorded || rep.Known != want.Known || len(rep.Refused) > 0 {
			t.Errorf("%+v, want %+v", rep, want)
		}
	}
	if e, err := newestOf(t.Context(), r.st, "default"); err != nil || e.N != 502 {
		t.Errorf("%+v, %v", e, err)
	}
}
