import { defineSender } from 'media-webhooks'
import { z } from 'zod'

const upload = z.object({ id: z.string(), asset_id: z.string().nullish() })
const asset = z.object({
  id: z.string(),
  duration: z.number().nullish(),
  playback_ids: z.array(z.object({ id: z.string(), policy: z.string() })).default([]),
  errors: z.object({ messages: z.array(z.string()).default([]) }).nullish(),
})

export const mux = defineSender({
  name: 'mux',
  events: {
    'video.upload.created': upload,
    'video.upload.cancelled': upload,
    'video.upload.errored': upload,
    'video.asset.ready': asset,
    'video.asset.errored': asset,
  },
  read: ({ type, id, created_at, object, data }) => ({
    type,
    id,
    emittedAt: created_at,
    // An asset of a direct upload gets the id of the upload, so that an expectation sees both.
    mediaId: data.upload_id ?? object.id,
    data,
  }),
})
