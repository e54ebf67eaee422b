package memory

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var rewrite = flag.Bool("update", false, "write what comes out into testdata")

func measured(t *testing.T, o Options) *Measures {
	t.Helper()
	if o.Memory.Handle == nil {
		o.Memory = Product()
	}
	o.Only = Measured
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Measures
}

// same holds that a report is the one in a file, to the byte.
func same(t *testing.T, r *Measures, file string) {
	t.Helper()
	got, err := (&Report{Measures: r, Gates: r.Gates}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		end := func(b []byte) []byte { return b[max(0, at-200):min(len(b), at+100)] }
		t.Errorf("%s is not what comes out. If the change is meant, write it anew.\n got …%s…\nwant …%s…", file, end(got), end(want))
	}
}

// TestSmall holds a small run to its file. The whole one takes minutes: make
// check makes it again.
func TestSmall(t *testing.T) {
	r := measured(t, Options{Seeds: []uint64{101}, Chains: 6})
	same(t, r, filepath.Join("testdata", "small.json"))
}
