package gate

import (
	"net/url"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// What may be fetched because it was seen (R20).

// fromSeen is R20: for egress alone, a value that stood whole in any result.
func (j *judge) fromSeen(l *leaf) writ.Reason {
	s := j.session()
	if s == nil {
		return writ.ProvenanceSession
	}
	best, ok := s.ledger.Seen(l.value)
	if !isLink(l) {
		ok = false
	}
	if !ok || l.empty || j.d.Effect&^policy.Read != policy.Egress {
		return writ.ProvenanceUnseen
	}
	if s.ledger.Secrets() {
		return writ.ProvenanceSecret // R30: which link is chosen can tell it
	}
	at := fetched{hostOf(l.text), s.root(best.Evidence)}
	made := s.fetches[at]
	for _, other := range j.d.basis.fetches { // of this call, as of a list of links
		if other == at {
			made++
		}
	}
	if made >= fetchesPerResult {
		return writ.PolicyFetches
	}
	l.founded = founded{rule_: "seen", label: best.Label, refs: []Ref{refOf(best)}, open: true}
	j.d.basis.fetches = append(j.d.basis.fetches, at)
	return ""
}

// isLink reports whether a leaf is what R20 is about: an absolute URL, or one
// whose scheme was left out (R15).
func isLink(l *leaf) bool {
	_, _, why := provenance.Canonical(provenance.URL, l.value)
	if why != "" && l.isText && !strings.Contains(l.text, "://") {
		_, _, why = provenance.Canonical(provenance.URL, strictjson.StringOf("https://"+l.text))
	}
	return why == ""
}

// fetched is what counts the links of one result that were followed to one host, with
// those of the pages reached by them: which of many is fetched can spell what the
// fetcher knows (R20).
type fetched struct {
	host string
	root uint32 // evidence
}

const fetchesPerResult = 3

// root is the result from which a result was reached by links that were seen.
func (s *Session) root(evidence uint32) uint32 {
	if r, ok := s.roots[evidence]; ok {
		return r
	}
	return evidence
}

// hostOf returns what a link is fetched from: the last two labels of its host, so
// that names made up below one domain count together, without port and in small
// letters.
func hostOf(link string) string {
	if !strings.Contains(link, "://") {
		link = "https://" + link
	}
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	labels := strings.Split(strings.TrimRight(strings.ToLower(u.Hostname()), "."), ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}
