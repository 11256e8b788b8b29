import type { Handlers } from 'media-webhooks'

export const handlers: Handlers = {
  async 'encoding.finished'({ mediaId, qualities }) {
    console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
  },
  async 'encoding.failed'({ mediaId, title }) {
    console.log(`tell the owner that ${title ?? mediaId} failed`)
  },
}
