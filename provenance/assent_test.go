package provenance_test

import (
	"testing"

	"github.com/writ-project/writ/provenance"
)

func TestAssents(t *testing.T) {
	for _, own := range []string{
		"yes", "Yes.", "Yes, please!", "ok", "Okay, go ahead.", "Sure - do it", "yes please go ahead and do that, thanks!", "That's right. Please proceed.",
		"that’s correct", "Go ahead", "Great, please continue.", "You can proceed now", "I confirm.", "  confirmed\n", "Perfect, do it. Thank you!", "Yes, go ahead with it", "Looks good, and go on", "Yes, thanks!", "Sure, thank you.", "Perfect, yes please",
	} {
		if !provenance.Assents(own) {
			t.Errorf("%q only agrees", own)
		}
	}
	for _, own := range []string{
		"", " ", "please", "thanks", "Great, thanks!", "ok thank you", "That's fine, thanks", "yes?", "ok, is that right?", "yes, Bob", "yes but not the second", "no", "not ok", "yes no", "go ahead and delete it", "do it for Bob",
		"right-click", "yes\x00", "okayed", "continue tomorrow", "that is right, stop", "yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes",
		"the correct one", "confirm nothing", "y e s", "ja", "and now",
	} {
		if provenance.Assents(own) {
			t.Errorf("%q says more, or does not agree", own)
		}
	}
}
