package gate

// Session, Tool and Catalogue get their fields in session.go and catalogue.go.
type (
	Session struct{}
)
