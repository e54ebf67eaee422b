package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/strictjson"
)

// Meta is what a run is known by and the evaluation cannot know.
type Meta struct {
	// Time is when it was made. No hash is over it.
	Time time.Time
	// Commit is the git commit of the program, in hex, or unknown.
	Commit string
}

// Manifest says of one system what was run, on what, and what came of it.
type Manifest struct {
	Model  string   `json:"model_id"` // none: no model is called
	Commit string   `json:"git_sha"`
	System string   `json:"system"`
	Seeds  []uint64 `json:"seed_set"`
	Time   string   `json:"timestamp_utc"`
	// Config is the SHA-256 of the canonical JSON (RFC 8785) of the system: its
	// name, how it is made, and its policy's text.
	Config string `json:"config_hash"`
	Bundle string `json:"scenario_bundle_hash"`
	// Results is the SHA-256 of scenario_results.jsonl, whose lines are
	// canonical JSON and hold no time that passed.
	Results string `json:"scenario_results_hash"`
	// Reproducibility is the SHA-256 of the canonical JSON of all the other
	// fields but the time.
	Reproducibility string `json:"reproducibility_hash"`
}

var commitForm = regexp.MustCompile(`^([0-9a-f]{8})[0-9a-f]{32}$`)

// Artifacts returns the files of a staged evaluation by their paths: one directory
// for each system. The same evaluation gives the
// same bytes but for the time.
func (r *Stages) Artifacts(m Meta) (map[string][]byte, error) {
	commit := "unknown"
	if s := commitForm.FindStringSubmatch(m.Commit); s != nil {
		commit = s[1]
	} else if m.Commit != commit {
		return nil, errors.New("a commit is 40 hexadecimal digits, or unknown")
	}
	out := map[string][]byte{}
	var err error
	add := func(name string, b []byte, e error) {
		out[name] = b
		err = errors.Join(err, e)
	}
	seeds := strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Seeds), " ", "-"), "[]")
	for i := range r.Systems {
		s := &r.Systems[i]
		dir := fmt.Sprintf("%s_%s_%s_%s", m.Time.UTC().Format("2006-01-02"), commit, s.Name, seeds)
		var runs []*RunLine
		for _, l := range r.Runs {
			if l.System == s.Name {
				runs = append(runs, l)
			}
		}
		if len(runs) == 0 {
			continue
		}
		results, e := canonicalLines(runs)
		add(path.Join(dir, "scenario_results.jsonl"), results, e)
		b, e := canonicalLines(of(r.Transitions, func(t transition) bool { return t.System == s.Name }))
		add(path.Join(dir, "transitions.jsonl"), b, e)
		b, e = canonicalLines(of(r.Consolidations, func(c consolidation) bool { return c.System == s.Name }))
		add(path.Join(dir, "consolidation_events.jsonl"), b, e)
		b, e = json.MarshalIndent(struct {
			System string   `json:"system"`
			Seeds  []uint64 `json:"seed_set"`
			groups
		}{s.Name, r.Seeds, grouped(s.Figures)}, "", "  ")
		add(path.Join(dir, "metrics_summary.json"), append(b, '\n'), e)
		config := s.source
		if config == nil {
			config = fmt.Appendf(nil, "# %s: %s\n{}\n", s.Name, s.How)
		}
		add(path.Join(dir, "config_snapshot.yaml"), config, nil)
		man, e := manifest(r, s, m, results, config)
		add(path.Join(dir, "manifest.json"), man, e)
	}
	return out, err
}

func of[T any](in []T, keep func(T) bool) (out []T) {
	for _, x := range in {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// canonicalLines is one line of canonical JSON for each.
func canonicalLines[T any](in []T) ([]byte, error) {
	var out bytes.Buffer
	for _, x := range in {
		b, err := json.Marshal(x)
		if err == nil {
			b, err = strictjson.Canonical(b)
		}
		if err != nil {
			return nil, err
		}
		out.Write(append(b, '\n'))
	}
	return out.Bytes(), nil
}

// hashOf is the SHA-256 of the canonical JSON of v.
func hashOf(v any) (string, error) {
	b, err := canonicalLines([]any{v})
	if err != nil {
		return "", err
	}
	return sha(bytes.TrimSuffix(b, []byte("\n"))), nil
}

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func manifest(r *Stages, s *Figures, m Meta, results, config []byte) ([]byte, error) {
	man := Manifest{Model: "none", Commit: m.Commit, System: s.Name, Seeds: r.Seeds, Bundle: r.Bundle, Results: sha(results)}
	var err error
	if man.Config, err = hashOf(map[string]string{"system": s.Name, "how": s.How, "policy": string(config)}); err != nil {
		return nil, err
	}
	if man.Reproducibility, err = man.reproducibility(); err != nil {
		return nil, err
	}
	man.Time = m.Time.UTC().Format("2006-01-02T15:04:05Z")
	b, err := json.MarshalIndent(man, "", "  ")
	return append(b, '\n'), err
}

// reproducibility is the hash of all fields but itself and the time.
func (m Manifest) reproducibility() (string, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	b = strictjson.Delete(strictjson.Delete(b, "timestamp_utc"), "reproducibility_hash")
	b, err = strictjson.Canonical(b)
	return sha(b), err
}
