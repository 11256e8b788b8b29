import type { PropsWithChildren } from 'hono/jsx'

/** A list of {@link Fact}s. */
export function Facts({ children }: PropsWithChildren) {
  return <dl class="facts">{children}</dl>
}

/** A name and what it stands for. */
export function Fact({ name, children }: PropsWithChildren<{ name: string }>) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
