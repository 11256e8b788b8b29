import {
  eventIntervalNs,
  type MediaFacts,
  makeLifecycle,
  makePayload,
} from '../../../../src/service/emulator/media/lifecycle.ts'
import type { Payload } from '../../../../src/testing/payload.ts'

/** A media item with the time of its upload. */
export interface UploadedMedia extends MediaFacts {
  /** The time at which the file was received, in nanoseconds since 1970. */
  readonly receivedAt: bigint
}

/** Makes all payloads of a media item, from its upload to its end. */
export function lifecycle(media: UploadedMedia): Payload[] {
  return makeLifecycle(media).map((event, index) =>
    makePayload(media, event, media.receivedAt + BigInt(index) * eventIntervalNs),
  )
}
