package tools

// Watch has changed be called whenever tools have come or gone, once for each
// change, by whoever made it, until stop is called; a call that has begun by then
// may still be running. changed must be quick. It may use the registry.
func (r *Registry) Watch(changed func()) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watchers == nil {
		r.watchers = make(map[int]func())
	}
	r.watched++
	id := r.watched
	r.watchers[id] = changed
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, id)
	}
}

// tell calls the watchers. The caller does not hold mu.
func (r *Registry) tell() {
	r.mu.RLock()
	watchers := make([]func(), 0, len(r.watchers))
	for _, changed := range r.watchers {
		watchers = append(watchers, changed)
	}
	r.mu.RUnlock()
	for _, changed := range watchers {
		changed()
	}
}
