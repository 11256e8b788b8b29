import { eventIntervalNs, lifecycleOf, type MediaFacts, payloadOf } from '../../../src/emulator/media/lifecycle.ts'
import type { Payload } from '../../../src/testing/payload.ts'

/** A media whose life is told at once. */
export interface UploadedMedia extends MediaFacts {
  /** When its file was received, in nanoseconds since 1970. */
  readonly receivedAt: bigint
}

/** The payloads of a media from its upload to its end. */
export function lifecycle(media: UploadedMedia): Payload[] {
  return lifecycleOf(media).map((event, index) =>
    payloadOf(media, event, media.receivedAt + BigInt(index) * eventIntervalNs),
  )
}
