//! Any bytes that a program writes to the device: a packet, or counted as unfit.

#[path = "../../fuzz/inputs.rs"]
mod inputs;

use aqmlab_emu::packet::buffers::Buffers;
use aqmlab_emu::packet::offload::{self, Offload};
use aqmlab_emu::packet::segments::{MOST_HEAD, Run, plan};
use aqmlab_emu::packet::wire::parse;
use aqmlab_sim::network::PacketStore;

/// Each input is the kernel's offload header and a packet.
#[test]
fn packets_are_carried_or_counted_as_unfit() {
    const WORDS: &[&str] =
        &["\u{1}\u{1}\u{8}\n", "E\0", "`\0\0\0", "\0\0\0\0", "\u{5}\u{2}", ",\0"];
    inputs::try_all("packet", WORDS, |input| {
        let Some((header, packet)) = input.split_first_chunk::<{ offload::SIZE }>() else {
            return false;
        };
        let Ok(headers) = parse(packet) else { return false };
        assert!(headers.length as usize <= packet.len());
        assert!(u32::from(headers.transport) <= headers.length);
        let offload = Offload::from_bytes(header);
        assert_eq!(offload.to_bytes(), *header);
        let Ok(frame) = plan(packet, headers, offload) else { return false };
        let mut buffers = Buffers::default();
        buffers.scratch()[..packet.len()].copy_from_slice(packet);
        let place = buffers.keep(frame);
        let mut room = [0; MOST_HEAD];
        let mut bytes = 0;
        for segment in 0..frame.segments {
            let mut handle = frame.packet(place, segment, 0);
            if segment % 2 == 0 {
                handle.mark();
            }
            let size = handle.size();
            let run = Run::of(&handle);
            let (_, parts) = run.frame(&buffers, &mut room);
            assert_eq!(parts.concat().len(), size as usize);
            bytes += size - if frame.step > 0 { frame.head } else { 0 };
            buffers.free_run(run);
        }
        assert_eq!(bytes, headers.length - frame.head);
        assert_eq!(buffers.live_count(), 0);
        true
    });
}
