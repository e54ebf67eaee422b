package memory

import (
	"context"
	"errors"
	"iter"
)

// ErrBehind says that an index is not at the record a change starts from:
// somebody else has changed it, or it was deleted. Nothing was written.
var ErrBehind = errors.New("memory: the index is at another record")

// Doc is one text that can be found. An id has at most one text. The text may
// be any bytes; id and kind are UTF-8 without NUL, not empty, compared bytewise.
type Doc struct {
	ID   string
	Kind string // observation, proposition, entity, episode
	Text string
}

// Change brings an index of one namespace from one record of its log to a
// later one. A put replaces the text of its id; a dropped id has none. An id
// stands in a change once, or the change is refused.
type Change struct {
	Namespace string
	From, To  uint64 // numbers of records; From is 0 for an index that is empty
	Put       []Doc
	Drop      []string
}

// Hit is one text that holds at least one of the words asked for.
type Hit struct {
	ID   string
	Kind string
	BM25 float64 // higher is better, positive
}

// Index finds texts by their words. It is a projection: all it holds comes from
// the log, and deleted it is made again. Whatever is asked, no text of another
// namespace is found, counted, or changes a score (M02).
//
// An Index is safe for concurrent use, by several processes where it is kept in
// a file.
type Index interface {
	// At returns the record the index is at, 0 when it holds nothing.
	At(ctx context.Context, namespace string) (uint64, error)
	// Update applies a change, all or nothing. ErrBehind unless the index is at
	// c.From.
	Update(ctx context.Context, c Change) error
	// Search returns the best texts, best first, equal ones by id: at most limit
	// of all, or, where kinds are given, at most limit of each of them.
	//
	// The query is words and nothing else: what looks like an operator, a
	// wildcard or a quote is text (M06). A query without a word finds nothing;
	// of a long one only the first words count, each once.
	//
	// A text is found if it holds one of the words, however common the word
	// is: none is passed over to save time. Its score is BM25 with the
	// constants of FTS5 over all texts of the namespace, of whatever kind; the
	// parts of a score are added from the word that the fewest texts hold to the
	// one that most do, bytewise among equals, so that two indexes agree to the
	// last bit.
	Search(ctx context.Context, namespace, query string, kinds []string, limit int) ([]Hit, error)
	// Docs yields all texts by id, bytewise.
	Docs(ctx context.Context, namespace string) iter.Seq2[Doc, error]
	// Reset forgets a namespace.
	Reset(ctx context.Context, namespace string) error
}
