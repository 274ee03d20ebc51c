import os

FOLDER = "/srv/files"


def save(request):
    name = request.form["name"]
    path = FOLDER + "/" + name
    with open(path, "wb") as f:
        f.write(request.files["file"].read())
    os.chmod(path, 0o777)
    return path
