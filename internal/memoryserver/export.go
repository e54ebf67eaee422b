package memoryserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// Manifest is the first line of an export. The lines after it are the state in
// its canonical encoding, a row each; the same state has the same bytes.
type Manifest struct {
	V         int         `json:"v"` // 1
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Head      uint64      `json:"head"`   // number of the newest event
	Policy    string      `json:"policy"` // SHA-256 of its file
	Mode      memory.Mode `json:"mode"`
	// Tables counts the rows of each table, Rows all of them.
	Tables map[string]int `json:"tables"`
	Rows   int            `json:"rows"`
	// SHA256 is that of all bytes after the manifest's line: the digest of the
	// state.
	SHA256 string `json:"sha256"`
}

const exportKind = "memory.export"

// tableOf is the table of one line after the manifest.
func tableOf(row []byte) string {
	t, _ := strictjson.Text(strictjson.Get(row, "table"))
	return t
}

// Export writes a state with its manifest.
func Export(w io.Writer, s *memory.State) (*Manifest, error) {
	var rows bytes.Buffer
	if err := s.Encode(&rows); err != nil {
		return nil, err
	}
	m := &Manifest{V: 1, Kind: exportKind, Namespace: s.Namespace(), Head: s.Head(), Policy: s.PolicyHash(), Mode: s.Mode(),
		Tables: map[string]int{}, SHA256: audit.Sum(rows.Bytes()).String()}
	for line := range bytes.Lines(rows.Bytes()) {
		m.Tables[tableOf(line)]++
		m.Rows++
	}
	first, err := canonical("export", m)
	if err == nil {
		_, err = w.Write(first)
	}
	if err == nil {
		_, err = w.Write(rows.Bytes())
	}
	return m, err
}

// canonical is a line of canonical JSON.
func canonical(what string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err == nil {
		b, err = strictjson.Canonical(b)
	}
	if err != nil {
		return nil, fmt.Errorf("memory: %s: %w", what, err)
	}
	return append(b, '\n'), nil
}

// rowLimits bound one line of an export.
var rowLimits = strictjson.Limits{Bytes: 4 << 20, Depth: 16, Leaves: 200_000, Number: 64}

// importExport reads what Export wrote. What is not exactly that is refused as
// a whole: a row that is missing would not be missed. Its observations are
// evidence anew, of no more trust than any import; what was believed of them is
// not taken over.
func (p *importer) importExport(b []byte) {
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(first))
	d.DisallowUnknownFields()
	if strictjson.Check(first, rowLimits) != nil || d.Decode(&m) != nil || m.Kind != exportKind {
		p.fault(1, "the manifest of an export is expected")
		return
	}
	again, err := canonical("export", m)
	switch {
	case m.V != 1:
		p.fault(1, "an export of a version this one does not know")
	case err != nil || !bytes.Equal(again, append(bytes.Clone(first), '\n')):
		p.fault(1, "the manifest is not as an export writes it")
	case audit.Sum(rest).String() != m.SHA256:
		p.fault(1, "the rows are not those of the manifest: their SHA-256 differs")
	}
	if len(p.Faults) > 0 {
		return
	}
	line, tables := 1, map[string]int{}
	for raw := range bytes.Lines(rest) {
		line++
		if strictjson.Check(raw, rowLimits) != nil {
			p.fault(line, "not a row of an export")
			return
		}
		table := tableOf(raw)
		if tables[table]++; table != "observation" {
			continue
		}
		var r struct {
			Key string             `json:"key"`
			Row memory.Observation `json:"row"`
		}
		o := &r.Row
		if err := json.Unmarshal(raw, &r); err != nil || o.ID != r.Key {
			p.fault(line, "not an observation")
			return
		}
		if o.Status != memory.Ingested || o.Raw == "" {
			p.Skipped++
			continue
		}
		p.add(line, o.Raw, m.Namespace+"/"+o.ID, o.EventTime.String())
	}
	for t, n := range m.Tables {
		if tables[t] != n {
			p.fault(1, "the manifest counts other rows")
			return
		}
	}
}
