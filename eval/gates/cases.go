package gates

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"path"
	"strings"

	"github.com/writ-project/writ/internal/strictyaml"
)

// The cases of a section are all files of the directory of its name, in the
// order of their names; a file's name is the kind of its cases. worlds/ holds
// what several cases are judged in. README.md says how a case is written.
//
//go:embed cases
var embedded embed.FS

// Every case has an id, unique among all; what to expect: accept, or the reason
// the gate must give; and may have, for who reads the file, the attack it is a
// case of, as testdata/attacks.txt names it, and a note.

// written is a text that YAML may not be able to hold: hex is bytes, and in
// either form fill is put, times over, where {fill} stands.
type written struct {
	Text string `yaml:"text"`
	Hex  string `yaml:"hex"`
	Fill struct {
		With  string           `yaml:"with"`
		Times strictyaml.Whole `yaml:"times"`
	} `yaml:"fill"`
}

// ReadYAML implements strictyaml.Readable: a plain text needs no mapping.
func (w *written) ReadYAML(r *strictyaml.Reader, n *strictyaml.Node) {
	if n.Kind != strictyaml.Mapping {
		r.Decode(n, &w.Text)
		return
	}
	type plain written
	r.Decode(n, (*plain)(w))
	if _, err := hex.DecodeString(w.Hex); err != nil {
		r.Fault(n, "hex is not hexadecimal", "")
	}
}

func (w written) bytes() []byte {
	s := w.Text
	if w.Hex != "" {
		b, _ := hex.DecodeString(w.Hex)
		s = string(b)
	}
	return []byte(strings.ReplaceAll(s, "{fill}", strings.Repeat(w.Fill.With, w.Fill.Times.N)))
}

// loader reads case files and notes what is wrong with them.
type loader struct {
	files  fs.FS
	hashes map[string]hash.Hash // of the files of a section, and of the worlds
	seen   map[string]string    // ids, and where they stand
	worlds map[string]*world
	faults []string
}

func newLoader(files fs.FS) *loader {
	return &loader{files: files, hashes: map[string]hash.Hash{}, seen: map[string]string{}, worlds: map[string]*world{}}
}

func (l *loader) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

func (l *loader) err() error {
	if len(l.faults) == 0 {
		return nil
	}
	return fmt.Errorf("the cases cannot be read: %s", strings.Join(l.faults, "\n"))
}

// decode reads one file.
func (l *loader) decode(file string, into any) bool {
	b, err := fs.ReadFile(l.files, file)
	if err != nil {
		l.fault("%s: not there", file)
		return false
	}
	dir := path.Base(path.Dir(file))
	if l.hashes[dir] == nil {
		l.hashes[dir] = sha256.New()
	}
	note(l.hashes[dir], file, string(b))
	r := strictyaml.New(file)
	ok := r.Read(b, "a file of cases has the key cases", into)
	for _, f := range r.Faults() {
		l.fault("%s", f)
	}
	return ok
}

// note writes texts into a digest so that they cannot run into each other.
func note(h hash.Hash, texts ...string) {
	for _, s := range texts {
		fmt.Fprintf(h, "%d:%s,", len(s), s)
	}
}

func sum(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

// digest returns the digest of the files of a section, and of the worlds if
// there are any.
func (l *loader) digest(section string) string {
	h := sha256.New()
	for _, dir := range []string{section, "worlds"} {
		if l.hashes[dir] != nil {
			note(h, sum(l.hashes[dir]))
		}
	}
	return sum(h)
}

// loaded is a case with its id, the kind of its file, and what it must be blocked for, if
// it must be.
type loaded[T any] struct {
	id, kind, want string
	c              T
}

// load reads all cases of a section.
func load[T any](l *loader, section string, head func(*T) (id, expect string)) (out []loaded[T]) {
	dir := path.Join("cases", section)
	entries, err := fs.ReadDir(l.files, dir)
	if err != nil {
		l.fault("%s: not there", dir)
	}
	for _, e := range entries {
		file := path.Join(dir, e.Name())
		kind, ok := strings.CutSuffix(e.Name(), ".yaml")
		var form struct {
			Cases []T `yaml:"cases"`
		}
		if !ok || !l.decode(file, &form) {
			if !ok {
				l.fault("%s: the name of a file of cases ends in .yaml", file)
			}
			continue
		}
		for i := range form.Cases {
			id, expect := head(&form.Cases[i])
			switch where, twice := l.seen[id]; {
			case id == "" || expect == "":
				l.fault("%s: case %d has no id or does not say what to expect", file, i+1)
			case twice:
				l.fault("%s: the id %s stands in %s too", file, id, where)
			}
			l.seen[id] = file
			if expect == "accept" {
				expect = ""
			}
			out = append(out, loaded[T]{id, kind, expect, form.Cases[i]})
		}
	}
	return out
}
