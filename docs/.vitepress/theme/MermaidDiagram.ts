import { useData } from 'vitepress'
import { defineComponent, h, onMounted, ref, useId, watch } from 'vue'

/**
 * A diagram, drawn in the reader's browser and drawn again when the colours change. Until then, and without JavaScript,
 * it shows its source.
 */
export default defineComponent({
  props: { source: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData()
    const id = `mermaid-${useId()}`
    const source = decodeURIComponent(props.source)
    const svg = ref('')
    const draw = async () => {
      svg.value = await drawn(id, source, isDark.value)
    }
    onMounted(draw)
    watch(isDark, draw, { flush: 'post' })
    return () =>
      svg.value === ''
        ? h('pre', { class: 'diagram' }, h('code', source))
        : h('div', { class: 'diagram', innerHTML: svg.value })
  },
})

async function drawn(id: string, source: string, darkMode: boolean): Promise<string> {
  const { default: mermaid } = await import('mermaid')
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: 'strict',
    theme: 'base',
    themeVariables: { darkMode, ...colours() },
    fontFamily: getComputedStyle(document.body).fontFamily,
    // At their own size: in a narrow window they scroll.
    sequence: {
      useMaxWidth: false,
      mirrorActors: false,
      diagramMarginX: 8,
      width: 100,
      actorMargin: 20,
      messageMargin: 28,
    },
    state: { useMaxWidth: false },
  })
  return (await mermaid.render(id, source)).svg
}

/** The colours of the page, light or dark, by mermaid's names. */
function colours() {
  const style = getComputedStyle(document.documentElement)
  const colour = (name: string) => style.getPropertyValue(`--vp-c-${name}`).trim()
  const [background, text, line] = [colour('bg'), colour('text-1'), colour('text-3')]
  return {
    background,
    textColor: text,
    primaryColor: colour('bg-soft'),
    primaryTextColor: text,
    primaryBorderColor: line,
    lineColor: text,
    noteBkgColor: background,
    noteTextColor: text,
    noteBorderColor: line,
    edgeLabelBackground: background,
    labelBackgroundColor: background,
  }
}
