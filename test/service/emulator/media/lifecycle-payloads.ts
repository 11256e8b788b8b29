import {
  eventIntervalNs,
  lifecycleOf,
  type MediaFacts,
  payloadOf,
} from '../../../../src/service/emulator/media/lifecycle.ts'
import type { Payload } from '../../../../src/testing/payload.ts'

/** A media item with the time of its upload. */
export interface UploadedMedia extends MediaFacts {
  /** The time at which the file was received, in nanoseconds since 1970. */
  readonly receivedAt: bigint
}

/** Makes all payloads of a media item, from its upload to its end. */
export function lifecycle(media: UploadedMedia): Payload[] {
  return lifecycleOf(media).map((event, index) =>
    payloadOf(media, event, media.receivedAt + BigInt(index) * eventIntervalNs),
  )
}
