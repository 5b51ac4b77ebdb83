//! Routes of a network: lists of links.
//!
//! A route is data of the network; a packet contains only the index of its next hop. When a route
//! [changes](Routes::change), packets sent from then on take the new links, and packets in flight
//! continue along the old ones: a [`Hop`] is an index into a list that only grows.

/// Number of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteId(pub u32);

/// Index of the next hop of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop(pub u32);

/// Marks the end of a route.
const END: u32 = u32::MAX;

/// All routes of a network.
#[derive(Clone, Default)]
pub struct Routes {
    /// Links of each list, followed by [`END`].
    hops: Vec<u32>,
    /// First hop of each route.
    first: Vec<Hop>,
}

impl Routes {
    /// Adds a route over these links.
    pub fn add(&mut self, links: impl IntoIterator<Item = u32>) -> RouteId {
        let first = self.list(links);
        self.first.push(first);
        RouteId(self.first.len() as u32 - 1)
    }

    /// Changes a route for packets sent from now on.
    pub fn change(&mut self, route: RouteId, links: impl IntoIterator<Item = u32>) {
        self.first[route.0 as usize] = self.list(links);
    }

    fn list(&mut self, links: impl IntoIterator<Item = u32>) -> Hop {
        let first =
            Hop(u32::try_from(self.hops.len()).expect("fewer than 2^32 hops fit in memory"));
        self.hops.extend(links);
        debug_assert!(!self.hops[first.0 as usize..].contains(&END));
        self.hops.push(END);
        first
    }

    /// Returns the first hop of a route.
    #[inline]
    pub fn start(&self, route: RouteId) -> Hop {
        self.first[route.0 as usize]
    }

    /// Returns the link of a hop; `None` at the end of the route.
    #[inline]
    pub fn link(&self, at: Hop) -> Option<u32> {
        let link = self.hops[at.0 as usize];
        (link != END).then_some(link)
    }
}

impl Hop {
    /// Returns the following hop.
    #[inline]
    pub fn next(self) -> Self {
        Hop(self.0 + 1)
    }
    /// Returns the preceding hop.
    #[inline]
    pub fn previous(self) -> Self {
        Hop(self.0 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the links from a hop to the end of the route.
    fn links(routes: &Routes, mut at: Hop) -> Vec<u32> {
        let mut links = Vec::new();
        while let Some(link) = routes.link(at) {
            links.push(link);
            at = at.next();
        }
        links
    }

    #[test]
    fn what_is_under_way_when_a_route_changes_goes_on_along_the_old_one() {
        let mut routes = Routes::default();
        let [one, two] = [routes.add([3, 1, 4]), routes.add([1])];
        let under_way = routes.start(one).next();
        routes.change(one, [2, 7]);
        assert_eq!(links(&routes, under_way), [1, 4]);
        assert_eq!(links(&routes, routes.start(one)), [2, 7]);
        assert_eq!(links(&routes, routes.start(two)), [1]);
    }
}
