package provenance

import (
	"testing"

	"golang.org/x/net/publicsuffix"
)

// TestFileEnds: what is told to be a file's name by its end alone is no domain, by the
// list that browsers go by.
func TestFileEnds(t *testing.T) {
	for end := range fileEnds {
		if suffix, icann := publicsuffix.PublicSuffix("x." + end); icann || suffix != end {
			t.Errorf(".%s is a domain", end)
		}
	}
	for end := range domainEnds {
		if _, icann := publicsuffix.PublicSuffix("x." + end); !icann && !fileEnds[end] {
			t.Errorf(".%s is no domain: it stands in the wrong list", end)
		}
	}
}
