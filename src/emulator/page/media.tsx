import type { Media } from '../media/media.ts'
import { ActionForm } from './action-form.tsx'
import { Field, Tick } from './field.tsx'
import { Moment } from './moment.tsx'
import { type PageState, typedInto } from './page-state.ts'
import { Pager, pageOf } from './pager.tsx'
import { Section } from './section.tsx'
import { Timeline } from './timeline.tsx'

/** The media, the newest one first, and a form for one more. */
export function MediaSection({ page }: { page: PageState }) {
  const media = page.parts.studio.list()
  const { offset, limit, ...pager } = pageOf(page, 'media', media.length, 5)
  const typed = typedInto(page, 'media')
  return (
    <Section id="media" title="Media" of={['media', 'sendings']}>
      <ActionForm page={page} action="media" class="card">
        <Field label="Title" name="title" placeholder="Untitled.mp4" value={typed?.get('title') ?? undefined} />
        <Field label="Qualities" name="qualities" value={typed?.get('qualities') ?? '360p,720p'} />
        <Tick label="Its encoding fails" name="fails" checked={typed?.has('fails') ?? false} />
        <button type="submit" class="primary">
          Upload media
        </button>
      </ActionForm>
      {media.length > 0 && (
        <ul class="cards">
          {media.slice(offset, offset + limit).map((one) => (
            <MediaCard page={page} media={one} />
          ))}
        </ul>
      )}
      <Pager page={page} list="media" {...pager} />
    </Section>
  )
}

function MediaCard({ page, media }: { page: PageState; media: Media }) {
  return (
    <li id={`media-${media.id}`} class="card">
      <h3>{media.title}</h3>
      <p class="quiet">
        {media.state}, uploaded at <Moment at={media.createdAt} />
      </p>
      <Timeline page={page} media={media} />
    </li>
  )
}
