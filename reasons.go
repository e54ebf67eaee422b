package writ

// Reason is a stable, dotted, machine-loggable reason id. Ids are listed in
// this file only, are never reused and never change their meaning. The part
// before the first dot groups them; the code they are reported under is that
// of CodeOf.
type Reason string

// Names: no such tool, or one that may not be called.
const (
	NameUnknown   Reason = "name.unknown"   // no tool of that name is listed
	NameAmbiguous Reason = "name.ambiguous" // several servers share the name
	NameChanged   Reason = "name.changed"   // the definition is not the pinned one (R26)
	NameUnpinned  Reason = "name.unpinned"  // no definition was approved (R26)
	NameForbidden Reason = "name.forbidden" // no contract allows it (INV-3)
	NameUnlisted  Reason = "name.unlisted"  // the server said that its tools changed, and did not list this one again as it was (R26)
)

// Payload: the bytes are not a call.
const (
	PayloadNotObject Reason = "payload.not_object"
	PayloadSyntax    Reason = "payload.syntax" // not strict JSON (RFC 8259, no duplicates, UTF-8)
	PayloadTooLarge  Reason = "payload.too_large"
	PayloadTooDeep   Reason = "payload.too_deep"
	PayloadNumber    Reason = "payload.number" // a number literal out of bounds
)

// Schema: the arguments do not satisfy the tool's own schema, closed.
const (
	SchemaInvalid      Reason = "schema.invalid"
	SchemaUnknownField Reason = "schema.unknown_field"
	SchemaMissingField Reason = "schema.missing_field"
	SchemaUnusable     Reason = "schema.unusable" // the tool's schema could not be compiled
)

// Provenance: a value traces to nothing that may vouch for it.
const (
	ProvenanceUnseen     Reason = "provenance.unseen"      // no whole value that was seen is it
	ProvenanceLabel      Reason = "provenance.label"       // seen, at a label that does not vouch
	ProvenanceReflected  Reason = "provenance.reflected"   // seen only as a reflection of the model's own values (R4)
	ProvenanceSource     Reason = "provenance.source"      // seen at a source this argument does not accept
	ProvenanceOneShot    Reason = "provenance.one_shot"    // a one-time value that was used, or whose time is over (R19)
	ProvenanceSmall      Reason = "provenance.small_space" // too small a value to match without a typed pointer (R8)
	ProvenanceOpenTarget Reason = "provenance.open_target" // a true id, but of a collection anyone can add to (R28)
	ProvenanceDerived    Reason = "provenance.derived"     // no accepted derivation gives this value
	ProvenanceConst      Reason = "provenance.const"       // not one of the operator's constants
	ProvenanceCatalog    Reason = "provenance.catalog"     // not a member of the pinned schema's enum or const
	ProvenanceSaidBy     Reason = "provenance.said_by"     // nobody whom the user named asked for it, or not for it alone (R12)
	ProvenanceSession    Reason = "provenance.no_session"  // the call carries no session, so there is no evidence
	ProvenanceAnchor     Reason = "provenance.anchor"      // vouched, but the user did not name the record that would be destroyed (R9)
	ProvenanceOrder      Reason = "provenance.order"       // the user named it, and ordered nothing of it (R9)
	ProvenanceKey        Reason = "provenance.key"         // an object key the schema does not name (R16)
	ProvenanceAtom       Reason = "provenance.atom"        // free text holds a link, address, number or the like that nothing vouches for (R14)
	ProvenanceReader     Reason = "provenance.reader"      // free text goes to somebody whom the user did not name (R14)
	ProvenanceSecret     Reason = "provenance.secret"      // free text, after the agent was given a secret (R30)
	ProvenanceFull       Reason = "provenance.full"        // seen nowhere, in a session that had no room for all that it was shown
	ProvenanceRecord     Reason = "provenance.record"      // vouched, but of another record than the argument it belongs to (R37)
)

// Form: a value is not in the canonical form its type demands (R16, R17).
const (
	FormNotCanonical Reason = "form.not_canonical"
	FormInvisible    Reason = "form.invisible" // zero-width, bidi or control characters
	FormMixedScript  Reason = "form.mixed_script"
	FormTooMany      Reason = "form.too_many" // more elements than max_items
	FormDuplicate    Reason = "form.duplicate"
	FormDotFile      Reason = "form.protected_path"   // R34: dot-files, .git, CI and agent settings
	FormBrings       Reason = "form.brings_protected" // R34: a directory that has such a file in it, where it says what is written to
)

// Policy: the act is well founded and still not allowed.
const (
	PolicyNoArguments   Reason = "policy.no_arguments"   // R21
	PolicyClosed        Reason = "policy.closed"         // the contract is closed until a person opens it
	PolicyMisdeclared   Reason = "policy.misdeclared"    // the definition says that something leaves, and the contract that nothing does
	PolicyContested     Reason = "policy.contested"      // R25
	PolicyPointerClosed Reason = "policy.pointer_closed" // R24: 5 refusals on one pointer
	PolicySessionClosed Reason = "policy.session_closed" // R24: 50 refused acts
	PolicyNotRecorded   Reason = "policy.not_recorded"   // the decision could not be written durably
	PolicyAltered       Reason = "policy.altered"        // what the session rests on was altered on disk
	PolicyRepeated      Reason = "policy.repeated"       // R23: a repeated act without fresh evidence
	PolicyAbsent        Reason = "policy.absent"         // no policy, or a catalogue that was not made with it
	PolicyAnswer        Reason = "policy.answer"         // R31: an answer inside a call is not founded
	PolicyBudget        Reason = "policy.budget"         // R27: the contract allows no more of it now
	PolicyCap           Reason = "policy.cap"            // R11: an amount above the contract's most
	PolicyFetches       Reason = "policy.fetches"        // R20: too many seen links of one result and host
)

// Approval: what fails only for want of a person (Askable) was put to one.
const (
	ApprovalPending Reason = "approval.pending" // nobody answered yet; the same call can be made again
	ApprovalRefused Reason = "approval.refused" // somebody said no
	ApprovalExpired Reason = "approval.expired" // nobody answered in time
)

// Askable reports whether a person can supply what a reason says is missing. Form,
// schema, names, Writ's own state, what was guessed at too often and the closing of a
// contract are not a person's to wave through in the middle of a call.
func Askable(r Reason) bool {
	switch r {
	case ProvenanceUnseen, ProvenanceLabel, ProvenanceReflected, ProvenanceSource, ProvenanceSmall, ProvenanceOpenTarget,
		ProvenanceDerived, ProvenanceConst, ProvenanceAnchor, ProvenanceOrder, ProvenanceKey,
		ProvenanceAtom, ProvenanceReader, ProvenanceSecret, ProvenanceFull, ProvenanceRecord, ProvenanceSaidBy,
		FormBrings, PolicyNoArguments, PolicyContested, PolicyRepeated, PolicyFetches, PolicyAnswer:
		return true
	}
	return false
}

// Plan: what the planner proposed is no plan (INV-1, terminal plans).
const (
	PlanSyntax     Reason = "plan.syntax"      // not one strict JSON value and nothing else
	PlanNotObject  Reason = "plan.not_object"  // JSON, but no object
	PlanTooLarge   Reason = "plan.too_large"   // bytes, values or a name beyond the bound
	PlanTooDeep    Reason = "plan.too_deep"    // nested too deep
	PlanNumber     Reason = "plan.number"      // a number literal out of bounds
	PlanType       Reason = "plan.type"        // type is absent or none of the two
	PlanUnknownKey Reason = "plan.unknown_key" // a key its type does not have
	PlanMissingKey Reason = "plan.missing_key" // a key of its type is absent
	PlanValue      Reason = "plan.value"       // a key has a value of the wrong kind, or an empty one
	PlanFinal      Reason = "plan.final"       // final_answer without needs_more_info: true
)

// Typed: a result that may not be read as data (INV-4).
const (
	TypedUnregistered Reason = "typed.unregistered" // no output schema is registered for the tool
	TypedSyntax       Reason = "typed.syntax"       // the result is not a strict JSON object
	TypedIsError      Reason = "typed.is_error"     // isError is present and not false
	TypedMissing      Reason = "typed.missing"      // no structuredContent
	TypedSchema       Reason = "typed.schema"       // structuredContent does not satisfy the schema
)

// Summary and ground: a claim that cannot be shown in its source (INV-5).
const (
	SummarySyntax     Reason = "summary.syntax"      // not one strict JSON object, or beyond its bounds
	SummaryUnknownKey Reason = "summary.unknown_key" // a key a summary does not have
	SummaryMissingKey Reason = "summary.missing_key" // a key of a summary is absent
	SummaryValue      Reason = "summary.value"       // a value of the wrong kind, empty, or too long
	GroundSource      Reason = "ground.source"       // the source cannot be read as text
	GroundUnquoted    Reason = "ground.unquoted"     // the evidence stands nowhere in the source text
	GroundCropped     Reason = "ground.cropped"      // it does, but only as a part of words or numbers
	GroundShort       Reason = "ground.short"        // too short to show anything, or nothing but marks
	GroundMarker      Reason = "ground.marker"       // it holds the mark of a truncation
)

// Screen: the user's words are not acted on (INV-0).
const (
	ScreenHalt     Reason = "screen.halt"      // a pattern of the input policy matches
	ScreenNotText  Reason = "screen.not_text"  // not valid UTF-8
	ScreenTooLarge Reason = "screen.too_large" // longer than the input policy reads
	ScreenUnread   Reason = "screen.unread"    // no input policy has read it
)

// Memory: a proposal that lacks provenance, or names what is not there.
const (
	MemoryMissing     Reason = "memory.missing_provenance"     // a field that must name recorded evidence does not
	MemoryUnknown     Reason = "memory.unknown_provenance"     // it names an observation or evidence nobody recorded
	MemoryErased      Reason = "memory.erased_provenance"      // it names an observation that was erased
	MemoryQuarantined Reason = "memory.quarantined_provenance" // it names an observation that may support nothing
	MemoryQuote       Reason = "memory.quote"                  // words that do not stand in the evidence named
	MemoryUnborne     Reason = "memory.not_borne_out"          // evidence that has not in it the value it is to show
	MemoryEmpty       Reason = "memory.no_observation"         // the task has recorded nothing
	MemoryTarget      Reason = "memory.unknown_target"         // an object that does not exist
	MemoryPolicy      Reason = "memory.policy"                 // the policy or namespace is not the one in force
)

// Memory: a proposal that is well formed, has provenance, and is still not
// allowed now.
const (
	ContextMismatch     Reason = "context.mismatch"
	ObservationConflict Reason = "observation.id_conflict"
	ObservationRate     Reason = "observation.rate"
	ObservationScreened Reason = "observation.screened"
	SourceSuspended     Reason = "source.suspended"
	EntitySpawnCap      Reason = "entity.spawn_cap"
	PropositionSpawnCap Reason = "proposition.spawn_cap"
	PropositionClosed   Reason = "proposition.closed" // superseded or erased
	TestSpawnCap        Reason = "test.spawn_cap"
	TestClosed          Reason = "test.closed"
	EpisodePending      Reason = "episode.consolidation_pending"
	CommandUnknown      Reason = "command.unknown"     // no such operator command
	CommandState        Reason = "command.wrong_state" // the object is not in a state the command applies to
)

// DirectCanonical is a payload that names what only computation may set.
const DirectCanonical Reason = "direct.canonical_write"

// DirectOwnState is R34: a target inside Writ's own state or configuration.
const DirectOwnState Reason = "direct.own_state"

// DirectUnresolved is R34: what the arguments may name could not all be looked
// up, so Writ's own state may be among it.
const DirectUnresolved Reason = "direct.unresolved"

// CodeOf returns the one code a reason is reported under. A reason not listed
// here is a policy violation: an unknown reason still refuses.
func CodeOf(r Reason) Code {
	switch r {
	case NameUnknown, NameAmbiguous, NameChanged, NameUnpinned, NameForbidden, NameUnlisted:
		return InvalidToolName
	case PayloadNotObject, PayloadSyntax, PayloadTooLarge, PayloadTooDeep, PayloadNumber,
		SchemaInvalid, SchemaUnknownField, SchemaMissingField, SchemaUnusable,
		FormNotCanonical, FormInvisible, FormMixedScript, FormTooMany, FormDuplicate,
		PlanSyntax, PlanNotObject, PlanTooLarge, PlanTooDeep, PlanNumber,
		PlanType, PlanUnknownKey, PlanMissingKey, PlanValue, PlanFinal,
		TypedUnregistered, TypedSyntax, TypedIsError, TypedMissing, TypedSchema,
		SummarySyntax, SummaryUnknownKey, SummaryMissingKey, SummaryValue,
		ScreenNotText, ScreenTooLarge, MemoryTarget:
		return InvalidPayload
	case ProvenanceUnseen, ProvenanceLabel, ProvenanceReflected, ProvenanceSource, ProvenanceSmall,
		ProvenanceOpenTarget, ProvenanceDerived, ProvenanceConst, ProvenanceCatalog,
		ProvenanceSession, ProvenanceAnchor, ProvenanceOrder, ProvenanceKey, ProvenanceAtom, ProvenanceReader, ProvenanceSecret, ProvenanceFull, ProvenanceRecord, ProvenanceOneShot, ProvenanceSaidBy, PolicyAnswer,
		GroundSource, GroundUnquoted, GroundCropped, GroundShort, GroundMarker,
		MemoryMissing, MemoryUnknown, MemoryErased, MemoryQuarantined, MemoryQuote, MemoryUnborne, MemoryEmpty:
		return MissingProvenance
	case DirectOwnState, DirectUnresolved, DirectCanonical:
		return DirectWrite
	}
	return PolicyViolation
}
