"""Pages that load nothing from elsewhere: what the theme would fetch for search from disk lies in assets."""

FETCHED = "https://unpkg.com/iframe-worker/shim"
OURS = "assets/iframe-worker.js"


def on_template_context(context, template_name, **_context):
    """Have the page that says that there is none ask for what lies beside it, not at the root of a server."""
    if template_name == "404.html":
        context["base_url"] = "."
    return context


def on_post_page(output, page, **_context):
    """Name our copy; called by MkDocs with each page that is written."""
    return output.replace(FETCHED, "../" * page.url.count("/") + OURS)


def on_post_template(output_content, template_name, **_context):
    """Do the same for the page that says that there is none."""
    return output_content.replace(FETCHED, OURS) if template_name.endswith(".html") else output_content
