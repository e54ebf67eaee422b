package memory

import (
	"encoding/json"
	"path"
	"strings"
	"testing"
	"time"
)

func TestArtifacts(t *testing.T) {
	r := all(t)
	const sha1, sha2 = "0123456789abcdef0123456789abcdef01234567", "1123456789abcdef0123456789abcdef01234567"
	at := time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC)
	of := func(m Meta) (map[string][]byte, Manifest) {
		files, err := r.Artifacts(m)
		if err != nil {
			t.Fatal(err)
		}
		var man Manifest
		for name, b := range files {
			if path.Base(name) == "manifest.json" && strings.Contains(name, B5+"_") {
				if err := json.Unmarshal(b, &man); err != nil {
					t.Fatal(err)
				}
			}
		}
		return files, man
	}
	files, man := of(Meta{at, sha1})
	for _, s := range r.Systems {
		for _, name := range []string{"manifest.json", "config_snapshot.yaml", "transitions.jsonl", "consolidation_events.jsonl", "scenario_results.jsonl", "metrics_summary.json"} {
			if _, ok := files["2026-11-21_01234567_"+s.Name+"_101-202-303-404-505/"+name]; !ok {
				t.Errorf("%s of %s is missing", name, s.Name)
			}
		}
	}
	if n := strings.Count(string(files["2026-11-21_01234567_"+B5+"_101-202-303-404-505/transitions.jsonl"]), "\n"); n < 500 {
		t.Errorf("only %d transitions", n)
	}
	_, later := of(Meta{at.Add(time.Hour), sha1})
	if later.Time == man.Time || later.Reproducibility != man.Reproducibility {
		t.Error("the time counts, or does not stand there")
	}
	_, other := of(Meta{at, sha2})
	if other.Reproducibility == man.Reproducibility {
		t.Error("another commit has the same hash")
	}
	// Every field but the two counts.
	for _, change := range []func(*Manifest){
		func(m *Manifest) { m.Model = "x" }, func(m *Manifest) { m.Commit = sha2 }, func(m *Manifest) { m.System = B1 },
		func(m *Manifest) { m.Seeds = []uint64{1} }, func(m *Manifest) { m.Config += "0" }, func(m *Manifest) { m.Bundle += "0" }, func(m *Manifest) { m.Results += "0" },
	} {
		c := man
		change(&c)
		if got, err := c.reproducibility(); err != nil || got == man.Reproducibility {
			t.Errorf("%+v has the same hash", c)
		}
	}
	if got, err := man.reproducibility(); err != nil || got != man.Reproducibility {
		t.Error("the hash is not that of the manifest")
	}
	for _, bad := range []string{"", "../../x", "0123", strings.ToUpper(sha1[:39]) + "G"} {
		if _, err := r.Artifacts(Meta{at, bad}); err == nil {
			t.Errorf("%q is a commit", bad)
		}
	}
}
