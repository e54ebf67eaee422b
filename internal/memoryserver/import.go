package memoryserver

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// The formats an import reads.
const (
	FormatWrit         = "writ"          // what Export writes
	FormatServerMemory = "server-memory" // the reference memory server's JSONL
	FormatMarkdown     = "markdown"      // notes
)

// ImportFormats are the formats, for whoever names one.
var ImportFormats = []string{FormatWrit, FormatServerMemory, FormatMarkdown}

// Import is what a file holds: evidence to be recorded, of class import, which
// is worth what anybody's words are. Nothing in it is believed because a file
// says so.
type Import struct {
	Items []ImportItem
	// Skipped counts what the file holds and an import does not take: of an
	// export, observations that were erased, quarantined or distrusted.
	Skipped int
	// Faults are all defects. With one there are no items.
	Faults []ImportFault
}

// ImportItem is one observation to be.
type ImportItem struct {
	Line int
	// Raw is its text.
	Raw string
	// Ref says where it stood, in printable ASCII.
	Ref string
	// EventTime is when it happened, RFC 3339, "" if the file does not say.
	EventTime string
}

// ImportFault is one defect of a file.
type ImportFault struct {
	Line    int
	Message string
}

const (
	// MaxImport bounds a file.
	MaxImport = 64 << 20
	// maxItem is what an observation may hold, maxItems how many a file.
	maxItem   = 64 << 10
	maxItems  = 200_000
	maxFaults = 100
)

type importer struct {
	Import
	name string
}

// ReadImport reads a file of a format. name is what the items call it. It is
// deterministic and decides nothing.
func ReadImport(format, name string, b []byte) *Import {
	p := &importer{name: asciiName(name)}
	switch {
	case len(b) > MaxImport:
		p.fault(1, fmt.Sprintf("larger than %d MiB", MaxImport>>20))
	case format == FormatWrit:
		p.importExport(b)
	case format == FormatServerMemory:
		p.serverMemory(b)
	case format == FormatMarkdown:
		p.markdown(b)
	default:
		p.fault(1, "no format of that name")
	}
	if len(p.Faults) > 0 {
		p.Items, p.Skipped = nil, 0
	}
	return &p.Import
}

func (p *importer) fault(line int, message string) {
	if len(p.Faults) < maxFaults {
		p.Faults = append(p.Faults, ImportFault{line, message})
	}
}

func (p *importer) add(line int, raw, ref, eventTime string) {
	switch {
	case len(raw) > maxItem:
		p.fault(line, fmt.Sprintf("a text of %d bytes; an observation holds at most %d", len(raw), maxItem))
	case strings.ContainsRune(raw, 0):
		p.fault(line, "a NUL character")
	case len(p.Items) == maxItems:
		p.fault(line, fmt.Sprintf("more than %d texts", maxItems))
	default:
		p.Items = append(p.Items, ImportItem{line, raw, asciiName(ref), eventTime})
	}
}

// at says where in the file an item stands.
func (p *importer) at(line int) string { return fmt.Sprintf("%s:%d", p.name, line) }

// asciiName is a name that every later reader reads the same: printable ASCII,
// at most 200 bytes.
func asciiName(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c <= ' ' || c >= 0x7f {
			b[i] = '_'
		}
	}
	return string(b[:min(len(b), 200)])
}

// lineLimits bound one line of the reference server's file. Its own reader has
// no bound; a line is one entity with all that is said of it.
var lineLimits = strictjson.Limits{Bytes: 8 << 20, Depth: 4, Leaves: 100_000, Number: 64}

// serverFields are the members of each type of the reference server's lines.
var serverFields = map[string][]string{"entity": {"name", "entityType", "observations"}, "relation": {"from", "to", "relationType"}}

// serverMemory reads the reference memory server's file: a JSON object a line,
// of type entity or relation. Each thing said of an entity becomes an
// observation of its own, so that it can be cited, erased and distrusted alone;
// an entity of which nothing is said, and each relation, is one too.
func (p *importer) serverMemory(b []byte) {
	line := 0
	for raw := range bytes.Lines(b) {
		line++
		raw = bytes.TrimRight(raw, "\r\n")
		if len(bytes.Trim(raw, " \t")) == 0 {
			continue
		}
		if err := strictjson.Check(raw, lineLimits); err != nil {
			p.fault(line, err.Error())
		} else if ms, ok := strictjson.Members(raw); !ok {
			p.fault(line, "a JSON object is expected")
		} else {
			p.serverLine(line, strictjson.Of(raw), ms)
		}
	}
}

func (p *importer) serverLine(line int, v strictjson.Value, ms []strictjson.Member) {
	kind, _ := v.Get("type").Text()
	fields := serverFields[kind]
	if fields == nil {
		p.fault(line, `"type" is neither "entity" nor "relation"`)
		return
	}
	faults, said := len(p.Faults), [3]string{}
	for i, f := range fields {
		t, isText := v.Get(f).Text()
		if said[i] = t; !isText && (f != "observations" || !v.Get(f).Exists()) {
			p.fault(line, `"`+f+`" is missing or no text`)
		}
	}
	if slices.ContainsFunc(ms, func(m strictjson.Member) bool { return m.Name != "type" && !slices.Contains(fields, m.Name) }) {
		p.fault(line, "a member this format does not have: nothing is left out silently")
	}
	switch all, ok := strictjson.Elements(v.Get("observations").Raw()); {
	case len(p.Faults) > faults:
	case kind == "relation":
		p.add(line, textsOf("from", said[0], "relation", said[2], "to", said[1]), p.at(line), "")
	case !ok:
		p.fault(line, `"observations" is no list`)
	case len(all) == 0:
		p.add(line, textsOf("entity", said[0], "entity_type", said[1]), p.at(line), "")
	default:
		for _, o := range all {
			content, isText := strictjson.Text(o)
			if !isText {
				p.fault(line, "an observation that is no text")
				break
			}
			p.add(line, textsOf("entity", said[0], "entity_type", said[1], "observation", content), p.at(line), "")
		}
	}
}

// textsOf is a JSON object of texts, in this order.
func textsOf(pairs ...string) string {
	b := []byte("{}")
	for i := 0; i+1 < len(pairs); i += 2 {
		b = strictjson.Set(b, pairs[i], strictjson.Quote(pairs[i+1]))
	}
	return string(b)
}

// markdown reads notes: what stands between blank lines is an observation, its lines
// as they stand.
func (p *importer) markdown(b []byte) {
	var block []string
	line := 0
	for raw := range bytes.Lines(slices.Concat(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), []byte("\n\n"))) {
		line++
		s := strings.TrimRight(string(raw), "\r\n")
		switch blank := strings.TrimSpace(s) == ""; {
		case !utf8.ValidString(s):
			p.fault(line, "not UTF-8")
		case !blank:
			block = append(block, s)
		case len(block) > 0:
			begin := line - len(block)
			p.add(begin, strings.Join(block, "\n"), p.at(begin), "")
			block = nil
		}
	}
}

// Proposal is what records an item, of a source an operator names, as an
// operator's. The id comes from source and text alone, so an item that was
// recorded once is not recorded again, wherever in the file it stands now, and
// what was erased does not come back.
func (i *ImportItem) Proposal(principal, source string) (memory.Context, writ.Proposal) {
	sum := audit.Sum([]byte(source + "\x00" + i.Raw)).String()
	payload := []byte(textsOf("observation_id", "import:"+sum, "raw_payload", i.Raw, "source_ref", i.Ref))
	if i.EventTime != "" {
		payload = strictjson.Set(payload, "event_time", strictjson.Quote(i.EventTime))
	}
	return memory.Context{
		Principal: principal, Session: importSession, Task: importSession,
		Captured: []memory.Captured{{Ref: i.Ref, Label: writ.External, Source: source, Class: memory.ClassImport, Verbatim: true, Whole: true}},
	}, writ.Proposal{ToolName: memory.ToolRecordObservation, Payload: payload}
}

// importSession is the session of what no agent recorded. No session of a
// gateway has such a name.
const importSession = "import"
