//! The routes of a network: which links a packet takes, one after the other.
//!
//! A route is data of the network, and a packet says only how far it has come.
//! When a route [changes](Routes::change), what is sent from then on takes
//! the new links, and what is under way goes on along the old ones: a packet's
//! [`Position`] is a place in a list to which lists are only added.

/// A route, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteId(pub u32);

/// How far a packet has come: the link that it takes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position(u32);

/// Behind the last link of a route.
const END: u32 = u32::MAX;

/// All routes of a network.
#[derive(Clone, Default)]
pub struct Routes {
    /// The links of each list, and [`END`].
    hops: Vec<u32>,
    /// Where the list of each route begins.
    first: Vec<Position>,
}

impl Routes {
    /// Adds a route over these links.
    pub fn add(&mut self, links: impl IntoIterator<Item = u32>) -> RouteId {
        let first = self.list(links);
        self.first.push(first);
        RouteId(self.first.len() as u32 - 1)
    }

    /// Has what is sent over a route from now on take these links.
    pub fn change(&mut self, route: RouteId, links: impl IntoIterator<Item = u32>) {
        self.first[route.0 as usize] = self.list(links);
    }

    fn list(&mut self, links: impl IntoIterator<Item = u32>) -> Position {
        let first =
            Position(u32::try_from(self.hops.len()).expect("the memory for more is not there"));
        self.hops.extend(links);
        debug_assert!(!self.hops[first.0 as usize..].contains(&END));
        self.hops.push(END);
        first
    }

    /// The first link of a route.
    #[inline]
    pub fn start(&self, route: RouteId) -> Position {
        self.first[route.0 as usize]
    }

    /// Whether there is such a route.
    pub fn has(&self, route: RouteId) -> bool {
        (route.0 as usize) < self.first.len()
    }

    /// The link at a position; `None` behind the last.
    #[inline]
    pub fn link(&self, at: Position) -> Option<u32> {
        let link = self.hops[at.0 as usize];
        (link != END).then_some(link)
    }
}

impl Position {
    /// Behind the link at this position.
    #[inline]
    pub fn next(self) -> Self {
        Position(self.0 + 1)
    }
    /// Before it.
    #[inline]
    pub fn previous(self) -> Self {
        Position(self.0 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The links from a position to the end.
    fn links(routes: &Routes, mut at: Position) -> Vec<u32> {
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
        assert!(routes.has(two) && !routes.has(RouteId(2)));
    }
}
