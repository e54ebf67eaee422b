package upstream

func (c *Config) validateHTTP() error { return nil }
