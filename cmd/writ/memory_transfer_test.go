package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/memoryserver"
)

// stopping ends what is waited for as soon as something is told.
type stopping struct {
	strings.Builder
	stop func()
}

func (s *stopping) Write(b []byte) (int, error) {
	s.stop()
	return s.Builder.Write(b)
}

// TestMemoryImportPaced: an import speaks no faster than the policy lets one
// source speak; stopped while it waits, it goes on where it was.
func TestMemoryImportPaced(t *testing.T) {
	s := seed(t, plain)
	s.record("so that there is a namespace")
	var notes strings.Builder
	for i := range 63 {
		fmt.Fprintf(&notes, "- note %d\n", i)
	}
	in := memoryserver.ReadImport(memoryserver.FormatMarkdown, "notes.md", []byte(notes.String()))
	r, err := (&memoryFlags{state: s.dir}).open(t.Context(), toWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for _, want := range []importReport{{Recorded: 60}, {Known: 60}} {
		ctx, cancel := context.WithCancel(t.Context())
		told := &stopping{stop: cancel}
		rep := importReport{Source: "import/markdown"}
		err := r.record(ctx, in, &rep, told)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "stopped after 60 of 63") {
			t.Fatal(err)
		}
		if rep.Recorded != want.Recorded || rep.Known != want.Known || len(rep.Refused) > 0 {
			t.Errorf("%+v, want %+v", rep, want)
		}
		if !strings.Contains(told.String(), "60 of 63; the policy lets 60 observations of one source in a minute") {
			t.Error(told.String())
		}
	}
	// Nothing of the wait is on record.
	if e, err := newestOf(t.Context(), r.st, "default"); err != nil || e.N != 62 {
		t.Errorf("%+v, %v", e, err)
	}
	// A dry run does not wait, and says what the rest would be.
	rep := importReport{Source: "import/markdown", DryRun: true}
	if err := r.record(t.Context(), in, &rep, &strings.Builder{}); err != nil || rep.Recorded != 3 || rep.Known != 60 {
		t.Errorf("%+v, %v", rep, err)
	}
}
