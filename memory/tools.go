package memory

import (
	"encoding/json"
	"slices"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// ToolRemember is the everyday tool that writes: it records what it finds as
// evidence, and files the claim, in one. The others are the nine of the boundary.
const (
	ToolRemember = "remember"

	ToolRecordObservation = "record_observation"
	ToolEntity            = "create_or_link_entity_candidate"
	ToolPropose           = "propose_proposition"
	ToolAttachSupport     = "attach_support"
	ToolAttachContra      = "attach_contradiction"
	ToolProposeTest       = "propose_test"
	ToolTestResult        = "execute_test_result_ingest"
	ToolConsolidate       = "request_consolidation"
	ToolArchiveEpisode    = "archive_episode"
)

// A field is one member of a payload. Its kind says how it is read; the rest
// bounds it. Validation and the published schemas are made of the same table.
type field struct {
	name     string
	kind     kind
	required bool
	// sourced marks provenance: if it is absent, empty or malformed, the
	// proposal has no provenance, rather than a bad payload.
	sourced  bool
	min, max int
	enum     []string
	about    string
	// hidden leaves it out of the published schema: a client may name it, and
	// need not know it.
	hidden bool
}

type kind int

const (
	kindText   kind = iota // min to max code points
	kindRaw                // min to max bytes, never changed
	kindClient             // the caller's own id of an observation
	kindID                 // an id; enum holds its prefix
	kindIDs                // min to max ids; enum holds their prefix
	kindObs                // min to max observations, by the caller's id or ours
	kindWord               // one of enum
	kindSlug
	kindTime
	kindObject
	kindTexts
	kindOutcomes // proposition to outcome slug
	kindForm
	kindBool
	kindScalar // a text, number or boolean
)

// A tool is one that writes, or a command. What it does is asked once its payload
// was read.
type tool struct {
	name   string
	about  string
	fields []field
	do     func(*judge) *refusal
}

// maxText are the bounds of what is written.
const (
	maxRaw       = 64 << 10
	maxText      = 2000
	maxName      = 256
	maxQuote     = 500
	maxSummary   = 4000
	maxSourceRef = 2048
)

var (
	contextFields = []field{
		{name: "session_id", kind: kindText, min: 1, max: 128, hidden: true},
		{name: "task_id", kind: kindText, min: 1, max: 128, hidden: true},
	}
	observationFields = []field{
		{name: "observation_id", kind: kindClient, required: true, sourced: true, about: "Your own id for it."},
		{name: "raw_payload", kind: kindRaw, required: true, min: 1, max: maxRaw, about: "The words, verbatim."},
		{name: "parsed_payload", kind: kindObject, about: "Your reading of it; never evidence."},
		{name: "event_time", kind: kindTime, about: "When it happened."},
		{name: "source_ref", kind: kindText, min: 1, max: maxSourceRef, about: "ev12, a URL, a file; user."},
		{name: "derived_from", kind: kindObs, sourced: true, min: 1, max: 50, about: "What it was concluded from."},
	}
	claimID      = field{name: "proposition_id", kind: kindID, enum: []string{"prop"}, required: true}
	testID       = field{name: "test_id", kind: kindID, enum: []string{"test"}, required: true}
	attachFields = []field{claimID, observationIDs(20), {name: "quote", kind: kindRaw, sourced: true, min: 1, max: maxQuote, about: "Words that stand in each."}}
)

func observationIDs(max int) field {
	return field{name: "observation_ids", kind: kindObs, required: true, sourced: true, min: 1, max: max}
}

// tools are the everyday tool, and then the nine in the order of the boundary.
var tools = []tool{
	{ToolRemember, "Keep one fact. Writ finds the sentence or record of this session that says it and keeps that, not your wording: established if the user or a trusted tool said it, else unverified.", []field{
		{name: "text", kind: kindText, required: true, min: 1, max: maxText, about: "The fact, best in the words it was said in."},
		{name: "about", kind: kindText, min: 1, max: 300, about: "Whom it is about: Anna, or Anna: phone; me: diet for the user. The word behind the colon stands in the sentence or record."},
		{name: "replaces", kind: kindText, min: 1, max: 64, about: "The id of what it corrects."},
		// What Writ itself sets, so that the record says what was kept.
		{name: "raw_payload", kind: kindRaw, min: 1, max: maxRaw, hidden: true},
		{name: "value", kind: kindScalar, hidden: true},
		{name: "name", kind: kindText, min: 1, max: maxName, hidden: true},
	}, (*judge).remember},
	{ToolRecordObservation, "Record words that stand verbatim in what this session saw, with that source's trust.", observationFields, (*judge).recordObservation},
	{ToolEntity, "Name something claims can be about; the entity of that name and type, else a new one.", []field{
		{name: "name", kind: kindText, min: 1, max: maxName},
		{name: "entity_type", kind: kindSlug, required: true, about: "person, company; self is the user."},
		{name: "aliases", kind: kindTexts, max: 20, min: 0},
		{name: "entity_id", kind: kindID, enum: []string{"ent"}, about: "To give it more names."},
		observationIDs(20),
	}, (*judge).entity},
	{ToolPropose, "Propose a claim. One sentence or record of an observation must hold subject, predicate word and value; your text is a caption.", []field{
		{name: "text", kind: kindText, required: true, min: 1, max: maxText},
		{name: "class", kind: kindWord, enum: []string{"descriptive", "predictive", "causal", "procedural"}},
		{name: "structured_form", kind: kindForm, about: "Without it the claim stays unverified."},
		observationIDs(50),
		{name: "about", kind: kindIDs, enum: []string{"ent"}, required: true, min: 1, max: 10},
	}, (*judge).propose},
	{ToolAttachSupport, "Attach observations that bear a claim out.", attachFields, (*judge).attach},
	{ToolAttachContra, "Attach observations of another value of the same question, proposed before.", attachFields, (*judge).attach},
	{ToolProposeTest, "Note an action that would tell claims apart; run it yourself.", []field{
		{name: "proposition_ids", kind: kindIDs, enum: []string{"prop"}, required: true, min: 1, max: 5},
		{name: "kind", kind: kindWord, enum: []string{"query_alternate_source", "ask_user", "authoritative_fetch", "second_measure", "wait_for_sample"}, required: true},
		{name: "discriminates", kind: kindOutcomes, required: true, about: "For each claim the outcome it predicts, a word."},
		{name: "rationale_observation_ids", kind: kindObs, required: true, sourced: true, min: 1, max: 20},
	}, (*judge).proposeTest},
	{ToolTestResult, "Report what a test showed. What it means is read from the observation.", []field{
		testID,
		{name: "outcome", kind: kindSlug, about: "Your reading."},
		{name: "observation", kind: kindObject, required: true, sourced: true, about: "As for record_observation."},
	}, (*judge).testResult},
	{ToolConsolidate, "List what this task has established.", []field{
		{name: "reason", kind: kindWord, enum: []string{"task_boundary", "checkpoint"}, required: true},
	}, (*judge).consolidate},
	{ToolArchiveEpisode, "Close a finished, consolidated task, with a summary in your words.", []field{
		{name: "episode_id", kind: kindID, enum: []string{"epi"}},
		{name: "summary_text", kind: kindText, max: maxSummary, min: 1},
		{name: "observation_ids", kind: kindObs, sourced: true, min: 1, max: 50, about: "What it rests on."},
	}, (*judge).archive},
}

func toolOf(name string) *tool { return called(tools, name) }

// called is the one of that name, nil if there is none.
func called(of []tool, name string) *tool {
	for i := range of {
		if of[i].name == name {
			return &of[i]
		}
	}
	return nil
}

// all returns the fields of a tool with those every tool has.
func (t *tool) all() []field { return slices.Concat(t.fields, contextFields) }

// Remember returns the everyday tool that writes.
func Remember() ToolSpec { return tools[0].spec() }

// ToolSpec is one tool as it is published over MCP.
type ToolSpec struct {
	Name        string
	Description string
	InputSchema []byte // JSON Schema 2020-12
}

func (t *tool) spec() ToolSpec { return ToolSpec{t.name, t.about, objectSchema(t.fields)} }

// Tools returns the nine tools in the order of the boundary.
func Tools() (out []ToolSpec) {
	for i := range tools[1:] {
		out = append(out, tools[1+i].spec())
	}
	return out
}

// A schema is JSON Schema.
type schema map[string]any

var clientForm = text.Pattern(`^[A-Za-z0-9._:-]{1,128}$`)

// objectSchema is open: what is there and unknown the memory itself refuses, by its
// own codes.
func objectSchema(fields []field) []byte {
	properties, required := schema{}, []string{}
	for _, f := range fields {
		if f.hidden {
			continue
		}
		properties[f.name] = f.schema()
		if f.required {
			required = append(required, f.name)
		}
	}
	s := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	b, err := json.Marshal(s)
	if err == nil {
		b, err = strictjson.Canonical(b)
	}
	if err != nil {
		panic("memory: " + err.Error())
	}
	return b
}

func (f *field) schema() schema {
	s := schema{"type": "string"}
	if f.about != "" {
		s["description"] = f.about
	}
	bound := func(of string) {
		if f.min > 1 || f.kind != kindText && f.min > 0 {
			s["min"+of] = f.min
		}
		s["max"+of] = f.max
	}
	entity := "^ent_[0-9]+(_[0-9]+)?$"
	switch f.kind {
	case kindText, kindRaw:
		bound("Length")
	case kindClient:
		s["pattern"] = clientForm().String()
	case kindID:
		s["pattern"] = "^" + f.enum[0] + "_[0-9]+(_[0-9]+)?$"
	case kindIDs, kindObs:
		s["type"], s["items"] = "array", schema{"type": "string"}
		bound("Items")
	case kindWord:
		s["enum"] = f.enum
	case kindSlug:
		s["pattern"] = slugForm().String()
	case kindTime:
		s["format"] = "date-time"
	case kindTexts:
		s["type"], s["items"] = "array", schema{"type": "string", "minLength": 1, "maxLength": maxName}
		bound("Items")
	case kindOutcomes:
		s["type"], s["additionalProperties"] = "object", schema{"type": "string", "pattern": slugForm().String()}
	case kindBool:
		s["type"] = "boolean"
	case kindObject:
		s["type"] = "object"
	case kindForm:
		s["type"], s["additionalProperties"] = "object", false
		s["required"] = []string{"subject", "predicate", "object"}
		s["properties"] = schema{
			"subject":    schema{"type": "string", "pattern": entity},
			"predicate":  schema{"type": "string", "pattern": slugForm().String()},
			"qualifiers": schema{"type": "object"},
			"object": schema{"type": "object", "additionalProperties": false, "properties": schema{
				"entity":  schema{"type": "string", "pattern": entity},
				"literal": schema{"type": []string{"string", "number", "boolean"}},
			}},
		}
	}
	return s
}

// clientID reports whether s can be a caller's own id of an observation.
func clientID(s string) bool { return clientForm().MatchString(s) }
