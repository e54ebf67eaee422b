package gate

import (
	"crypto/sha256"
	"slices"

	"go.yaml.in/yaml/v4"
)

// policyFile is the operator's policy as it is written: strict YAML, one
// document, every key listed here and no other. Provenance section 2 says what
// the words mean.
type policyFile struct {
	place
	// Version is 1, and may be left out.
	Version whole `yaml:"version"`
	// Profile is standard (default) or strict.
	Profile text `yaml:"profile"`
	// Pins is required (default: a contract without a pin is shut) or optional.
	Pins text `yaml:"pins"`
	// Collections declares the sets of records by name.
	Collections mapping[collectionFile] `yaml:"collections"`
	// Tools holds the contracts, by server/tool.
	Tools mapping[toolFile] `yaml:"tools"`
}

func (policyFile) later() []string {
	return []string{"budgets", "approvals", "approvers", "derivations"}
}

type collectionFile struct {
	place
	// Closed says that only the operator's or the user's own side can make a
	// member appear (R28).
	Closed truth `yaml:"closed"`
}

func (collectionFile) later() []string { return []string{"may_hold_secrets"} }

type toolFile struct {
	place
	// Effect is one word or a list; required unless there are cases.
	Effect words `yaml:"effect"`
	// Pin is sha256:<64 hex> of the approved definition (R26).
	Pin text `yaml:"pin"`
	// Closed marks a draft no person has opened.
	Closed truth `yaml:"closed"`
	// Optional says that the tool may be missing from the server's list.
	Optional truth `yaml:"optional"`
	// Args holds the rules of the arguments, by pointer.
	Args mapping[argFile] `yaml:"args"`
	// Outputs labels leaves of the results.
	Outputs list[outputFile] `yaml:"outputs"`
	// NoArgs is refuse (default), approval (closed in this version) or allow,
	// for calls without a target, selector or amount (R21).
	NoArgs text `yaml:"no_args"`
	// Cases gives effect and args per value of one argument:
	// - { /method: [get, list], effect: read }
	Cases list[caseFile] `yaml:"cases"`
	// OutputSchema is a JSON Schema, as YAML or as a text of JSON, where the
	// server publishes none.
	OutputSchema anything `yaml:"output_schema"`
	// Idempotent may be true; false is not yet enforced (R23).
	Idempotent truth `yaml:"idempotent"`
	// Contested is accept (default) or refuse (R25).
	Contested text `yaml:"contested"`
}

func (toolFile) later() []string {
	return []string{"when", "budget", "budgets", "rate", "phrases", "one_shot", "lifetime", "caps", "approval"}
}

type argFile struct {
	place
	// Role is target (default), selector, amount, time, enum, control,
	// content, query or secret.
	Role text `yaml:"role"`
	// Type is a canonical form of R17.
	Type text `yaml:"type"`
	// Collection names the set of records the value belongs to.
	Collection text `yaml:"collection"`
	// From lists the accepted sources; left out, the role's default.
	From list[sourceFile] `yaml:"from"`
	// MaxItems bounds an array (R16).
	MaxItems whole `yaml:"max_items"`
	// Normalise replaces the value by its canonical form (R17).
	Normalise truth `yaml:"normalise"`
	// Content is local (R14).
	Content text `yaml:"content"`
	// Open lets this object have properties the schema does not name (R16).
	Open truth `yaml:"open"`
	// Owner lists the constants the record's owner pointer may hold (R28).
	Owner ownerFile `yaml:"owner"`
}

func (argFile) later() []string {
	return []string{"forms", "cap", "caps", "max", "one_shot", "extensions", "extension", "when", "budget"}
}

type outputFile struct {
	place
	// At is a pointer into structuredContent.
	At text `yaml:"at"`
	// In is text: the text of content block Block (0 is the first) is read
	// instead of structuredContent.
	In    text  `yaml:"in"`
	Block whole `yaml:"block"`
	// Extract takes the text apart: lines, by Pattern; json, by Pointer (R33).
	Extract text `yaml:"extract"`
	// Pattern is an RE2 that matches a whole line; its group 1 is the value.
	Pattern text `yaml:"pattern"`
	// Pointer names leaves of the JSON found in the text.
	Pointer text `yaml:"pointer"`
	// Join is the argument whose value is the directory of a single name.
	Join text `yaml:"join"`
	// Label is system, party, external or model; required.
	Label text `yaml:"label"`
	// Type is a canonical form of R17.
	Type text `yaml:"type"`
	// Collection names the set of records the value belongs to.
	Collection text `yaml:"collection"`
	// Authoritative says that the server lists its own state here (R4).
	Authoritative truth `yaml:"authoritative"`
	// Keys labels the keys of the object instead of a leaf.
	Keys truth `yaml:"keys"`
	// Secret marks confidentiality (R30).
	Secret truth `yaml:"secret"`
	// Creates marks what an act newly made (R13).
	Creates truth `yaml:"creates"`
	// Owner is a pointer, relative to the record, to its owner (R28).
	Owner text `yaml:"owner"`
}

func (outputFile) later() []string { return []string{"one_shot", "lifetime", "may_hold_secrets"} }

// ParsePolicy reads a policy. It returns either a policy or at least one
// fault: all there are, in the order of the file, each with its place and,
// where there is one, a hint. A word this version does not enforce is a fault,
// never ignored. The file name is only repeated in the faults.
func ParsePolicy(file string, b []byte) (*Policy, []Fault) {
	r := &reader{file: file, outputAt: map[*Contract][]*yaml.Node{}}
	var f policyFile
	if root := r.parse(b); root != nil {
		r.value(root, &f)
		p := r.compile(&f)
		r.lint(p)
		if len(r.faults) == 0 {
			p.Source = slices.Clone(b)
			p.Digest = sha256.Sum256(b)
			p.Warnings = sorted(r.warned)
			return p, nil
		}
	}
	return nil, sorted(r.faults)
}
