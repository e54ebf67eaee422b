package audit

import (
	"bytes"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// headsKind begins the text of signed heads, so that it is no checkpoint.
const headsKind = "writ heads\n"

var errHeads = errors.New("audit: not the signed heads of this log")

// SignHeads signs a tree and how many records each session has in its log.
// Whoever reads them back need not read the records before.
func SignHeads(t *Tree, heads map[string]Head, s note.Signer) (body, msg []byte, err error) {
	for level := len(t.edge) - 1; level >= 0; level-- {
		if t.size>>level&1 == 1 {
			body = append(hex.AppendEncode(body, t.edge[level][:]), '\n')
		}
	}
	for _, id := range slices.Sorted(maps.Keys(heads)) {
		h := heads[id]
		body = append(append(body, id...), ' ')
		body = append(strconv.AppendUint(body, h.N, 10), ' ')
		body = append(strconv.AppendInt(body, h.Index, 10), '\n')
	}
	msg, err = note.Sign(&note.Note{Text: headsText(Checkpoint{s.Name(), t.Size(), t.Root()}, body)}, s)
	return body, msg, err
}

func headsText(c Checkpoint, body []byte) string {
	return headsKind + c.String() + Sum(body).String() + "\n"
}

// OpenHeads returns what SignHeads signed with the key of v.
func OpenHeads(body, msg []byte, v note.Verifier) (t Tree, heads map[string]Head, err error) {
	n, err := note.Open(msg, note.VerifierList(v))
	if err != nil {
		return t, nil, errHeads
	}
	var c Checkpoint
	rest, ok := strings.CutPrefix(n.Text, headsKind)
	if i := len(rest) - 2*len(Digest{}) - 1; !ok || i < 0 {
		return t, nil, errHeads
	} else if c, err = ParseCheckpoint(rest[:i]); err != nil || c.Origin != v.Name() || n.Text != headsText(c, body) {
		return t, nil, errHeads
	}
	t, err = LoadTree(c.Size, func(Node) (h Hash, err error) {
		line, rest, _ := bytes.Cut(body, []byte("\n"))
		body = rest
		d, err := ParseDigest(string(line))
		return Hash(d), err
	})
	if err != nil || t.Root() != c.Root {
		return t, nil, errHeads
	}
	heads = make(map[string]Head, bytes.Count(body, []byte("\n")))
	for line := range bytes.Lines(body) {
		id, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		n, index, _ := strings.Cut(rest, " ")
		h := Head{Session: id}
		if h.N, err = strconv.ParseUint(n, 10, 64); err != nil {
			return t, nil, errHeads
		}
		if h.Index, err = strconv.ParseInt(index, 10, 64); err != nil {
			return t, nil, errHeads
		}
		heads[id] = h
	}
	return t, heads, nil
}
