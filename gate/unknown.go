package gate

import writ "github.com/writ-project/writ"

// UnknownTool is the outcome of a call whose name resolves to nothing. A call
// to a tool that is not listed is answered with the same bytes, so that names
// of hidden tools cannot be guessed.
func UnknownTool() writ.Outcome {
	return writ.Outcome{Status: writ.Rejected, Rejection: &writ.Rejection{
		Code: writ.CodeOf(writ.NameUnknown), Reason: writ.NameUnknown,
		Failures: []writ.Failure{{Reason: writ.NameUnknown, Need: needs[writ.NameUnknown]}},
	}}
}
