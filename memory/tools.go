package memory

import (
	"encoding/json"
	"slices"

	"github.com/writ-project/writ/internal/strictjson"
)

// The nine tools.
const (
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
	kindUnit // 0..1, clamped
	kindTime
	kindObject
	kindTexts
	kindOutcomes // proposition to outcome slug
	kindForm
	kindBool
	kindCount // a whole number up to max
)

// A tool is one of the nine.
type tool struct {
	name   string
	about  string
	fields []field
}

// maxText are the bounds of what is written.
const (
	maxRaw        = 64 << 10
	maxText       = 2000
	maxName       = 256
	maxQuote      = 500
	maxSummary    = 4000
	maxClientID   = 128
	maxSourceRef  = 2048
	maxParsedDeep = 8
)

var (
	contextFields = []field{
		{name: "session_id", kind: kindText, min: 1, max: 128, about: "If given, it must be the session of this connection."},
		{name: "task_id", kind: kindText, min: 1, max: 128, about: "If given, it must be the task of this connection."},
	}
	observationFields = []field{
		{name: "observation_id", kind: kindClient, required: true, sourced: true, about: "Your own id for it: letters, digits, . _ : -. The same id with the same content is stored once."},
		{name: "raw_payload", kind: kindRaw, required: true, min: 1, max: maxRaw, about: "The evidence, verbatim. If it stands in something Writ saw in this session, it gets that source's trust."},
		{name: "parsed_payload", kind: kindObject, about: "Your own reading of it, as an object. It is stored and never evidence."},
		{name: "event_time", kind: kindTime, about: "When it happened (RFC 3339), if not now."},
		{name: "source_ref", kind: kindText, min: 1, max: maxSourceRef, about: "Where it is from: an evidence id such as ev12, a URL, a message id, a file; or user, for what the user told you."},
		{name: "derived_from", kind: kindObs, sourced: true, min: 1, max: 50, about: "Observations it was concluded from. Its trust is at most theirs."},
	}
	observationIDs = func(max int) field {
		return field{name: "observation_ids", kind: kindObs, required: true, sourced: true, min: 1, max: max, about: "The recorded observations this rests on."}
	}
	tierWords   = []string{"low", "medium", "high", "durable", "static"}
	classWords  = []string{"descriptive", "predictive", "causal", "procedural"}
	impactWords = []string{"low", "high", "irreversible"}
	kindWords   = []string{"query_alternate_source", "ask_user", "authoritative_fetch", "second_measure", "wait_for_sample"}
)

var tools = []tool{
	{ToolRecordObservation, "Record one piece of evidence: what a tool returned, what the user said, what a document holds. Nothing can be believed that does not rest on a recorded observation.", observationFields},
	{ToolEntity, "Name something that claims can be about. An existing entity of that name and type is used; otherwise a candidate is made. Nothing is ever merged by this.", []field{
		{name: "name", kind: kindText, min: 1, max: maxName, about: "Required unless entity_id is given."},
		{name: "entity_type", kind: kindSlug, required: true, about: "A lower-case word: person, company, place. self is the user himself."},
		{name: "aliases", kind: kindTexts, max: 20, min: 0, about: "Other names of it, at most 256 characters each."},
		{name: "entity_id", kind: kindID, enum: []string{"ent"}, about: "An entity that is there already, to give it more names."},
		observationIDs(20),
	}},
	{ToolPropose, "Propose a claim. Its state is computed from its evidence; you cannot set it. A value for a question that has another value already replaces it only with sufficient evidence.", []field{
		{name: "text", kind: kindText, required: true, min: 1, max: maxText, about: "The claim in one sentence. An observation counts in full only if the value of the claim, and each number and address in this sentence, stands in it as it is written here; else as your inference."},
		{name: "class", kind: kindWord, enum: classWords, about: "What kind of claim; descriptive if left out."},
		{name: "structured_form", kind: kindForm, about: "{subject, predicate, object: {entity} or {literal}, qualifiers?}: the question and its value. Required for predicates with one value."},
		{name: "volatility", kind: kindWord, enum: tierWords, about: "How fast it grows stale; the predicate's if left out."},
		observationIDs(50),
		{name: "about", kind: kindIDs, enum: []string{"ent"}, required: true, min: 1, max: 10, about: "The entities it is about."},
		{name: "alternatives", kind: kindIDs, enum: []string{"prop"}, max: 10, about: "Propositions that cannot be true beside it."},
		{name: "valid_from", kind: kindTime, about: "From when it holds (RFC 3339), if not from the newest observation on."},
	}},
	{ToolAttachSupport, "Attach observations that support a proposition: in full where its value stands in them, else as your inference.", []field{
		{name: "proposition_id", kind: kindID, enum: []string{"prop"}, required: true, about: "The proposition."},
		observationIDs(20),
		{name: "quote", kind: kindRaw, sourced: true, min: 1, max: maxQuote, about: "The words that do, verbatim in each of the observations."},
	}},
	{ToolAttachContra, "Attach observations that contradict a proposition: in each stands another value of the same subject and predicate, which you propose first. It lowers confidence; nothing is deleted.", []field{
		{name: "proposition_id", kind: kindID, enum: []string{"prop"}, required: true, about: "The proposition."},
		observationIDs(20),
		{name: "quote", kind: kindRaw, sourced: true, min: 1, max: maxQuote, about: "The words that do, verbatim in each of the observations."},
	}},
	{ToolProposeTest, "Propose an action that would tell competing claims apart, each with a value (structured_form). It is stored as an open item; run it yourself and report with execute_test_result_ingest.", []field{
		{name: "proposition_ids", kind: kindIDs, enum: []string{"prop"}, required: true, min: 1, max: 5, about: "The claims it tests."},
		{name: "kind", kind: kindWord, enum: kindWords, required: true, about: "What to do."},
		{name: "discriminates", kind: kindOutcomes, required: true, about: "For each proposition the outcome it predicts, a lower-case word; at least two different ones for two propositions."},
		{name: "action_impact", kind: kindWord, enum: impactWords, required: true, about: "What is at stake."},
		{name: "estimated_cost", kind: kindUnit, required: true, about: "0 to 1."},
		{name: "estimated_benefit", kind: kindUnit, required: true, about: "0 to 1."},
		{name: "rationale_observation_ids", kind: kindObs, required: true, sourced: true, min: 1, max: 20, about: "The observations that make it worth while."},
	}},
	{ToolTestResult, "Report how a test ended, with what was observed: the value of the claim that predicted the outcome stands in it; for other, another value of the same subject and predicate, which you propose first.", []field{
		{name: "test_id", kind: kindID, enum: []string{"test"}, required: true, about: "The test."},
		{name: "outcome", kind: kindSlug, required: true, about: "One of the outcomes the test names, other for none of them, or inconclusive."},
		{name: "observation", kind: kindObject, required: true, sourced: true, about: "The payload of record_observation."},
	}},
	{ToolConsolidate, "Ask that what this task established is judged for durable memory.", []field{
		{name: "reason", kind: kindWord, enum: []string{"task_boundary", "checkpoint"}, required: true, about: "task_boundary when the task is over; checkpoint once 25 new observations came."},
	}},
	{ToolArchiveEpisode, "Close a finished task. It must have been consolidated since its last observation.", []field{
		{name: "episode_id", kind: kindID, enum: []string{"epi"}, about: "An archived episode, to archive again, which does nothing."},
		{name: "summary_text", kind: kindText, max: maxSummary, min: 1, about: "What happened, in your words. It is stored as your inference and never as evidence of more."},
		{name: "observation_ids", kind: kindObs, sourced: true, min: 1, max: 50, about: "What the summary rests on. Required with summary_text."},
		{name: "retention_class", kind: kindWord, enum: []string{"transient", "standard", "legal_hold"}, about: "How long it is kept; standard if left out."},
	}},
}

func toolOf(name string) *tool {
	for i := range tools {
		if tools[i].name == name {
			return &tools[i]
		}
	}
	return nil
}

// all returns the fields of a tool with those every tool has.
func (t *tool) all() []field { return slices.Concat(t.fields, contextFields) }

// ToolSpec is one tool as it is published over MCP.
type ToolSpec struct {
	Name         string
	Description  string
	InputSchema  []byte // JSON Schema 2020-12, closed
	OutputSchema []byte
}

// Tools returns the nine tools in the order of the boundary.
func Tools() []ToolSpec {
	out := make([]ToolSpec, len(tools))
	for i := range tools {
		out[i] = ToolSpec{tools[i].name, tools[i].about, objectSchema(tools[i].all()), OutcomeSchema()}
	}
	return out
}

// A schema is JSON Schema, its members in the order they are written.
type schema struct {
	Schema      string            `json:"$schema,omitempty"`
	Type        any               `json:"type,omitempty"`
	Description string            `json:"description,omitempty"`
	Enum        []string          `json:"enum,omitempty"`
	Pattern     string            `json:"pattern,omitempty"`
	Format      string            `json:"format,omitempty"`
	MinLength   *int              `json:"minLength,omitempty"`
	MaxLength   *int              `json:"maxLength,omitempty"`
	Minimum     *int              `json:"minimum,omitempty"`
	Maximum     *int              `json:"maximum,omitempty"`
	MinItems    *int              `json:"minItems,omitempty"`
	MaxItems    *int              `json:"maxItems,omitempty"`
	Items       *schema           `json:"items,omitempty"`
	Properties  map[string]schema `json:"properties,omitempty"`
	Required    []string          `json:"required,omitempty"`
	// Additional is false, or the schema of every member.
	Additional any `json:"additionalProperties,omitempty"`
}

const clientPattern = `^[A-Za-z0-9._:-]{1,128}$`

func objectSchema(fields []field) []byte {
	s := schemaOf(fields)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	b, err := json.Marshal(s) // maps are written in the order of their keys
	if err != nil {
		panic("memory: " + err.Error())
	}
	if b, err = strictjson.Canonical(b); err != nil {
		panic("memory: " + err.Error())
	}
	return b
}

func schemaOf(fields []field) schema {
	s := schema{Type: "object", Properties: map[string]schema{}, Additional: false}
	for _, f := range fields {
		s.Properties[f.name] = f.schema()
		if f.required {
			s.Required = append(s.Required, f.name)
		}
	}
	return s
}

func (f *field) schema() schema {
	s := schema{Type: "string", Description: f.about}
	bound := func(lo, hi **int) {
		if f.min > 0 {
			*lo = &f.min
		}
		*hi = &f.max
	}
	list := func(items schema) {
		s.Type, s.Items = "array", &items
		bound(&s.MinItems, &s.MaxItems)
	}
	switch f.kind {
	case kindText, kindRaw:
		bound(&s.MinLength, &s.MaxLength)
	case kindClient:
		s.Pattern = clientPattern
	case kindID:
		s.Pattern = "^" + f.enum[0] + "_[0-9]+(_[0-9]+)?$"
	case kindIDs:
		list(schema{Type: "string", Pattern: "^" + f.enum[0] + "_[0-9]+(_[0-9]+)?$"})
	case kindObs:
		list(schema{Type: "string", Pattern: clientPattern})
	case kindWord:
		s.Enum = f.enum
	case kindSlug:
		s.Pattern = `^[a-z][a-z0-9_-]{0,63}$`
	case kindUnit:
		zero, one := 0, 1
		s.Type, s.Minimum, s.Maximum = "number", &zero, &one
	case kindTime:
		s.Format = "date-time"
	case kindTexts:
		one, long := 1, maxName
		list(schema{Type: "string", MinLength: &one, MaxLength: &long})
	case kindOutcomes:
		s.Type, s.Additional = "object", schema{Type: "string", Pattern: `^[a-z][a-z0-9_-]{0,63}$`}
	case kindBool:
		s.Type = "boolean"
	case kindObject:
		s.Type = "object"
		if f.name == "observation" {
			o := schemaOf(observationFields)
			o.Description = f.about
			return o
		}
	case kindForm:
		s.Type, s.Additional = "object", false
		s.Required = []string{"subject", "predicate", "object"}
		s.Properties = map[string]schema{
			"subject":    {Type: "string", Pattern: `^ent_[0-9]+(_[0-9]+)?$`},
			"predicate":  {Type: "string", Pattern: `^[a-z][a-z0-9_-]{0,63}$`},
			"qualifiers": {Type: "object"},
			"object": {Type: "object", Additional: false, Properties: map[string]schema{
				"entity":  {Type: "string", Pattern: `^ent_[0-9]+(_[0-9]+)?$`},
				"literal": {Type: []string{"string", "number", "boolean"}},
			}},
		}
	}
	return s
}

// clientID reports whether s can be a caller's own id of an observation: not
// the form of ours.
func clientID(s string) bool {
	if s == "" || len(s) > maxClientID {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}
