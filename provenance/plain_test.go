package provenance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/writ-project/writ/provenance"
)

// Every spelling of an address that resolvers read is a host in an argument of one,
// with and without a path behind it, and one in parts is one in front of a path anywhere.
func TestPlainAddresses(t *testing.T) {
	forms := []string{"%d", "0x%x", "0X%X", "0%o", "0x0%x"}
	spell := func(n uint64, i int) string { return fmt.Sprintf(forms[i%len(forms)], n) }
	const a, b, c, d = 192, 0, 2, 1
	tried := 0
	for i := range len(forms) * len(forms) {
		j := i / len(forms)
		for parts, s := range []string{
			spell(a<<24|b<<16|c<<8|d, i),
			spell(a, i) + "." + spell(b<<16|c<<8|d, j),
			spell(a, i) + "." + spell(b, j) + "." + spell(c<<8|d, i+j),
			spell(a, i) + "." + spell(b, j) + "." + spell(c, i+j) + "." + spell(d, i),
		} {
			if ip, ok := provenance.Address(strings.ToLower(s)); !ok || ip.String() != "192.0.2.1" {
				t.Fatalf("%s is read as %v", s, ip)
			}
			for _, behind := range []string{"", ".", ":80", "/ten-people", "/ten people go", "?d=ten", "#ten", `\ten`} {
				for _, before := range []string{"", "/", `\`, "//", `/\`} {
					tried++
					if len(provenance.PlainAtoms(before+s+behind, []string{"host"})) == 0 {
						t.Errorf("%s is no host", before+s+behind)
					}
				}
			}
			if parts > 0 && len(provenance.PlainAtoms("see "+s+"/ten-people", []string{"query"})) == 0 {
				t.Errorf("%s is no host in front of a path", s)
			}
		}
	}
	if tried < 4000 {
		t.Errorf("%d spellings", tried)
	}
}

// TestPlainMarked: nor does a mark before it, behind it or in it hide a host.
func TestPlainMarked(t *testing.T) {
	for s, name := range map[string]string{
		"@3405803777/words": "url", "3405803777?(words": "url", "3405803777:80 words": "url", "2130706433。": "url", "0x7f.1。": "url", "(2130706433/words": "url",
		"/evil．com/words": "target", "/evil。com/words": "source", "README.md": "host", "CHANGELOG.md": "url",
	} {
		if len(provenance.PlainAtoms(s, []string{name})) == 0 {
			t.Errorf("%s: %q is no host", name, s)
		}
	}
	for s, name := range map[string]string{"17 cats": "url", "/docs/a.md": "target", "see 17": "address", "/usr/lib": "source"} {
		if atoms := provenance.PlainAtoms(s, []string{name}); len(atoms) > 0 {
			t.Errorf("%s: %q has %v", name, s, atoms)
		}
	}
}
